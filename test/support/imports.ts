import { readdirSync, readFileSync } from 'node:fs'
import { join, normalize, sep } from 'node:path'
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

/** The folders with modules of this repository, but those of the documentation site. */
const folders = ['src', 'adapters', 'packages', 'programs', 'examples', 'test', 'workshop']

export function modulesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/\b(?:node_modules|dist)\b/.test(name))
    .map((name) => join(folder, name))
}

const { compilerOptions } = ts.readConfigFile('tsconfig.json', ts.sys.readFile).config
const paths = Object.entries<readonly string[]>(compilerOptions.paths).map(
  ([name, [path = '']]) => ({
    name: new RegExp(`^${name.replace('*', '(.+)')}$`),
    path,
  }),
)

/** Returns the file of this repository that a module imports by a path or a name. */
function fileOf(importer: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) {
    return normalize(join(importer, '..', specifier)).replace(/\.js$/, '.ts')
  }
  for (const { name, path } of paths) {
    const found = name.exec(specifier)
    if (found !== null) return normalize(path.replace('*', found[1] ?? ''))
  }
  return undefined
}

const known = new Map<string, readonly string[]>()

export function importsOf(file: string): readonly string[] {
  const imports = known.get(file) ?? importsIn(readFileSync(file, 'utf8'))
  known.set(file, imports)
  return imports
}

/** The files of this repository that a module imports. */
export function importedBy(file: string): readonly string[] {
  return importsOf(file).flatMap((specifier) => fileOf(file, specifier) ?? [])
}

/** The files that a module imports by their paths. */
export function importedByPath(file: string): readonly string[] {
  return importsOf(file)
    .filter((specifier) => specifier.startsWith('.'))
    .flatMap((specifier) => fileOf(file, specifier) ?? [])
}

/** The modules outside of a package that need it: they import it, or a module that does. */
export function modulesThatNeed(name: string): ReadonlySet<string> {
  const folder = join('packages', name) + sep
  const importers = new Map<string, string[]>()
  for (const file of folders.flatMap(modulesIn)) {
    for (const other of importedBy(file)) {
      importers.set(other, [...(importers.get(other) ?? []), file])
    }
  }
  const needing = new Set<string>()
  const visit = (file: string): void => {
    if (file.startsWith(folder) || needing.has(file)) return
    needing.add(file)
    importers.get(file)?.forEach(visit)
  }
  for (const [file, by] of importers) if (file.startsWith(folder)) by.forEach(visit)
  return needing
}
