/**
 * Waits until a program prints `listening on URL`. Goes on reading afterwards, so that the pipe never fills up.
 * @param onText gets all that the program prints
 * @throws Error with the output if the program ends first
 */
export async function listeningUrl(
  stderr: ReadableStream<Uint8Array>,
  onText: (text: string) => void = () => undefined,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  async function read(): Promise<void> {
    const decoder = new TextDecoder();
    let output = "";
    for await (const bytes of stderr) {
      const text = decoder.decode(bytes, { stream: true });
      onText(text);
      output += text;
      const url = /listening on (http:\/\/\S+?)\/?\s/.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    }
    reject(new Error(`the program ended: ${output}`));
  }
  read().catch(reject);
  return promise;
}
