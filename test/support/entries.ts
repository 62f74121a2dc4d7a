import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import ts from 'typescript'

/** The file of an entry, by the name by which hosts import it. */
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
export const { compilerOptions } = ts.readConfigFile('tsconfig.json', ts.sys.readFile).config
const paths: Readonly<Record<string, readonly [string]>> = compilerOptions.paths

const ofWallet = 'create-open-payments-server/wallet/'

function fileOf(name: string): string {
  const [path = ''] = paths[name] ?? []
  if (name.startsWith(ofWallet)) {
    return `${paths[`${ofWallet}*`]?.[0]}`.replace('*', name.slice(ofWallet.length))
  }
  return path || `./adapters/${name.replace('open-payments-server/', '')}.ts`
}

/** The entries of the library, by the names by which hosts import them. */
export const library = Object.keys(exports)
  .filter((path) => !path.endsWith('.json'))
  .map((path) => `open-payments-server${path.slice(1)}`)

/** The entries of the packages. The files of the wallet, which have patterns, are copied and not imported. */
export const others = Object.keys(paths).filter(
  (name) => !/^open-payments-(?:server(?:$|\/)|programs$)|\*/.test(name),
)

/** The types of the language by which an interface of the library takes over members of another one. */
export const utilityTypesFile = 'utility-types.d.ts'
const utilityTypes = `
type Exclude<Type, Excluded> = Type extends Excluded ? never : Type
type Pick<Type, Name extends keyof Type> = { [Each in Name]: Type[Each] }
type Omit<Type, Name extends keyof any> = Pick<Type, Exclude<keyof Type, Name>>
type Partial<Type> = { [Name in keyof Type]?: Type[Name] }
`

/** The sources of all entries. Other names of the language, and those of other packages, stay unresolved. */
function sources(): ts.Program {
  const options: ts.CompilerOptions = { noLib: true, types: [] }
  const host = ts.createCompilerHost(options)
  const { getSourceFile } = host
  host.getSourceFile = (name, ...rest) =>
    name === utilityTypesFile
      ? ts.createSourceFile(name, utilityTypes, ts.ScriptTarget.Latest)
      : getSourceFile(name, ...rest)
  host.resolveModuleNameLiterals = (literals, file) =>
    literals.map(({ text }) => {
      const isOwn = text.startsWith('open-payments-') || text.startsWith(ofWallet)
      const own = isOwn ? fileOf(text) : undefined
      const path = resolve(own ?? resolve(dirname(file), text.replace(/\.js$/, '.ts')))
      const resolvedModule = { resolvedFileName: path, extension: '.ts' }
      return { resolvedModule: existsSync(path) ? resolvedModule : undefined }
    })
  const files = [...library, ...others].map(fileOf)
  return ts.createProgram([utilityTypesFile, ...files], options, host)
}

const program = sources()
export const checker = program.getTypeChecker()

/** Returns the symbol that a name stands for, in whichever file it is declared. */
export function declared(symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** Returns what an entry exports, by name. */
export function exportsOf(name: string): ReadonlyMap<string, ts.Symbol> {
  const file = program.getSourceFile(fileOf(name))
  const module = file && checker.getSymbolAtLocation(file)
  if (module === undefined) throw new Error(`${name} has no exports`)
  return new Map(
    checker.getExportsOfModule(module).map((symbol) => [symbol.name, declared(symbol)]),
  )
}
