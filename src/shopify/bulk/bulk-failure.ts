/**
 * A bulk operation that gives no file, or a file that cannot be read to its end. The load then reads the same data page
 * by page.
 */
export class BulkFailure extends Error {
  override readonly name = "BulkFailure";
}
