import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

/** The file of an entry, by the name by which hosts import it. */
const { exports, workspaces } = JSON.parse(readFileSync('package.json', 'utf8'))
const { compilerOptions } = ts.readConfigFile('tsconfig.json', ts.sys.readFile).config
const paths: Readonly<Record<string, readonly [string]>> = compilerOptions.paths

function fileOf(name: string): string {
  const [path = ''] = paths[name] ?? []
  return path || `./adapters/${name.replace('open-payments-server/', '')}.ts`
}

const library = Object.keys(exports)
  .filter((path) => path !== './package.json')
  .map((path) => `open-payments-server${path.slice(1)}`)
const others = Object.keys(paths).filter((name) => !/^open-payments-server(?:$|\/)/.test(name))

/** The sources of all entries. Names of other packages and of the language stay unresolved. */
function sources(): ts.Program {
  const options: ts.CompilerOptions = { noLib: true, types: [] }
  const host = ts.createCompilerHost(options)
  host.resolveModuleNameLiterals = (literals, file) =>
    literals.map(({ text }) => {
      const own = text.startsWith('open-payments-') ? fileOf(text) : undefined
      const path = resolve(own ?? resolve(dirname(file), text.replace(/\.js$/, '.ts')))
      const resolvedModule = { resolvedFileName: path, extension: '.ts' }
      return { resolvedModule: existsSync(path) ? resolvedModule : undefined }
    })
  return ts.createProgram([...library, ...others].map(fileOf), options, host)
}

const program = sources()
const checker = program.getTypeChecker()

/** Returns the symbol that a name stands for, in whichever file it is declared. */
function declared(symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

function exportsOf(name: string): ReadonlySet<ts.Symbol> {
  const file = program.getSourceFile(fileOf(name))
  const module = file && checker.getSymbolAtLocation(file)
  if (module === undefined) throw new Error(`${name} has no exports`)
  return new Set(checker.getExportsOfModule(module).map(declared))
}

/** The parts of a declaration that its users see: not the bodies of functions, nor values. */
function visibleParts(node: ts.Node): readonly ts.Node[] {
  const parts: ts.Node[] = []
  ts.forEachChild(node, (child) => {
    const isHidden =
      ts.isBlock(child) ||
      (ts.isClassElement(child) &&
        child.name !== undefined &&
        ts.isPrivateIdentifier(child.name)) ||
      (ts.isVariableDeclaration(node) && child === node.initializer)
    if (!isHidden) parts.push(child)
  })
  return parts
}

/** Calls `visit` with each name of a type in a declaration. */
function typeNames(node: ts.Node, visit: (name: ts.Node) => void): void {
  if (ts.isTypeReferenceNode(node)) visit(node.typeName)
  if (ts.isExpressionWithTypeArguments(node)) visit(node.expression)
  for (const part of visibleParts(node)) typeNames(part, visit)
}

/** Finds the types of this repository that the exports of an entry lead to. */
function typesIn(name: string): {
  readonly reached: ReadonlySet<ts.Symbol>
  readonly derived: string[]
} {
  const reached = new Set(exportsOf(name))
  const derived: string[] = []
  // The set grows while it is walked.
  for (const symbol of reached) {
    for (const declaration of symbol.declarations ?? []) {
      typeNames(declaration, (node) => {
        if (/^(?:Parameters|ReturnType)$/.test(node.getText())) {
          derived.push(`${symbol.name}: ${node.parent.getText()}`)
        }
        const found = checker.getSymbolAtLocation(node)
        if (found === undefined) return
        const type = declared(found)
        const isParameter = type.flags & ts.SymbolFlags.TypeParameter
        if (type.declarations !== undefined && !isParameter) reached.add(type)
      })
    }
  }
  return { reached, derived }
}

/** The entries that a host of another entry imports, or whose names the declarations of that entry import. */
function beside(name: string): readonly string[] {
  if (name === 'open-payments-server' || name === 'open-payments-server/core') return []
  const main = 'open-payments-server'
  return library.includes(name) ? [main] : [main, `${main}/core`, `${main}/adapter`]
}

/** The options of an entry that its documentation describes as URLs. */
function urlOptions(name: string): readonly string[] {
  const isUrl = /^(?:The )?(?:base )?URL of/
  return [...exportsOf(name)]
    .filter((symbol) => symbol.name.endsWith('Options'))
    .flatMap((symbol) => [...(symbol.members?.values() ?? [])])
    .filter((member) =>
      isUrl.test(ts.displayPartsToString(member.getDocumentationComment(checker))),
    )
    .map((member) => member.name)
}

describe.each([...library, ...others])('%s', (name) => {
  test('exports each type that its exports lead to, so that hosts can emit declarations', () => {
    const exported = new Set([name, ...beside(name)].flatMap((each) => [...exportsOf(each)]))
    const missing = [...typesIn(name).reached].filter((symbol) => !exported.has(symbol))
    expect(missing.map((symbol) => symbol.name)).toEqual([])
  })

  test('names the types of its parameters and results', () => {
    expect(typesIn(name).derived).toEqual([])
  })
})

test('an option that is a URL ends in Url, or has the name of the specification', () => {
  const options = [...library, ...others].flatMap(urlOptions)
  expect(options.length).toBeGreaterThan(5)
  const isNamed = /(?:Url|Endpoint)$|^(?:url|walletAddress)$/
  expect(options.filter((option) => !isNamed.test(option))).toEqual([])
})

test('every package with an entry is among those', () => {
  expect(workspaces).toEqual(['packages/*'])
  expect(others).toHaveLength(5)
})
