import ts from 'typescript'

/** The modules that the text of a module imports, loads later or replaces in a test. */
export function importsIn(text: string): readonly string[] {
  const { importedFiles } = ts.preProcessFile(text, true, true)
  const replaced = text.matchAll(/^\s*vi\.(?:do)?mock\(\s*(?:import\()?'([^']+)'/gim)
  return [
    ...importedFiles.map(({ fileName }) => fileName),
    ...[...replaced].map(([, specifier = '']) => specifier),
  ]
}
