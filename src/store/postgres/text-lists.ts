/**
 * JSON texts as one parameter, joined by line breaks. The driver quotes an array character by character, which takes
 * three times as long. Our JSON contains no line break: strings escape it.
 */
export function joinedTexts(texts: readonly string[]): string {
  return texts.join("\n");
}

/** SQL that splits such a parameter. The list must not be empty. @param number of the parameter */
export function splitTexts(parameter: number): string {
  return `string_to_array($${parameter}::text, E'\\n')`;
}
