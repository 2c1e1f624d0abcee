/**
 * A list of JSON texts as one parameter. The driver quotes each element of an array character by character, which takes
 * three times as long. JSON that we make has no line break: inside strings it is escaped.
 */
export function joinedTexts(texts: readonly string[]): string {
  return texts.join("\n");
}

/** What makes such a parameter an array again, by the number of the parameter. The list must not be empty. */
export function splitTexts(parameter: number): string {
  return `string_to_array($${parameter}::text, E'\\n')`;
}
