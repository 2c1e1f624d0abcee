/**
 * Joins JSON texts by line breaks to one parameter. The driver quotes an array character by character, which takes
 * three times as long. Our JSON contains no line break, because strings escape it.
 */
export function joinedTexts(texts: readonly string[]): string {
  return texts.join("\n");
}

/** Returns SQL that splits such a parameter. The list must not be empty. @param parameter the parameter's number */
export function splitTexts(parameter: number): string {
  return `string_to_array($${parameter}::text, E'\\n')`;
}
