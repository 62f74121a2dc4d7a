import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import {
  checker,
  declared,
  exportsOf,
  library,
  others,
  utilityTypesFile,
} from './support/entries.js'

const { workspaces } = JSON.parse(readFileSync('package.json', 'utf8'))

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
  const reached = new Set(exportsOf(name).values())
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
        const files = type.declarations?.map((each) => each.getSourceFile().fileName)
        if (files === undefined || files.includes(utilityTypesFile) || isParameter) return
        reached.add(type)
      })
    }
  }
  return { reached, derived }
}

/** The entries that a host of another entry imports, or whose names the declarations of that entry import. */
function beside(name: string): readonly string[] {
  const main = 'open-payments-server'
  if (name === `${main}/core`) return []
  // The declarations of the main entry import those of the records.
  if (name === main) return [`${main}/core`]
  return library.includes(name)
    ? [main, `${main}/core`]
    : [main, `${main}/core`, `${main}/adapter`, `${main}/attempts`]
}

const told = (symbol: ts.Symbol) => ts.displayPartsToString(symbol.getDocumentationComment(checker))

function isAmount({ declarations = [] }: ts.Symbol): boolean {
  return declarations.some(
    (each) =>
      ts.isPropertySignature(each) && /^(?:Amount|bigint)$/.test(each.type?.getText() ?? ''),
  )
}

/** The amounts of money among the members of the types of an entry, with what is said about them. */
function amountsIn(name: string): readonly { readonly member: string; readonly text: string }[] {
  const types = [...exportsOf(name).values()].filter(({ flags }) => flags & ts.SymbolFlags.Type)
  return types.flatMap((type) =>
    checker
      .getDeclaredTypeOfSymbol(type)
      .getProperties()
      .filter(isAmount)
      .map((each) => ({ member: `${type.name}.${each.name}`, text: told(each) })),
  )
}

/** The options of an entry that its documentation describes as URLs. */
function urlOptions(name: string): readonly string[] {
  const isUrl = /^(?:The )?(?:base )?URL of/
  return [...exportsOf(name).values()]
    .filter((symbol) => symbol.name.endsWith('Options'))
    .flatMap((symbol) => [...(symbol.members?.values() ?? [])])
    .filter((member) => isUrl.test(told(member)))
    .map((member) => member.name)
}

describe.each([...library, ...others])('%s', (name) => {
  test('exports each type that its exports lead to, so that hosts can emit declarations', () => {
    const exported = new Set(
      [name, ...beside(name)].flatMap((each) => [...exportsOf(each).values()]),
    )
    const missing = [...typesIn(name).reached].filter((symbol) => !exported.has(symbol))
    expect(missing.map((symbol) => symbol.name)).toEqual([])
  })

  test('names the types of its parameters and results', () => {
    expect(typesIn(name).derived).toEqual([])
  })
})

test('the main entry exports no stored record beside the view of it, for which a host could take it', () => {
  const names = exportsOf('open-payments-server')
  expect([...names.keys()].filter((each) => names.has(`${each}View`))).toEqual([])
})

test('each union of refusals says how it grows', () => {
  const unions = [...exportsOf('open-payments-server').values()].filter(({ name }) =>
    /Refusals?$/.test(name),
  )
  expect(unions.length).toBeGreaterThan(10)
  const silent = unions.filter((each) => !/Minor\s+versions\s+add\s+members/.test(told(each)))
  expect(silent.map(({ name }) => name)).toEqual([])
})

test('each amount says whose it is, and in which asset', () => {
  const amounts = [...library, ...others].flatMap(amountsIn)
  expect(amounts.length).toBeGreaterThan(100)
  expect(amounts.filter(({ text }) => text === '')).toEqual([])
})

test('an option that is a URL ends in Url, or has the name of the specification', () => {
  const options = [...library, ...others].flatMap(urlOptions)
  expect(options.length).toBeGreaterThan(5)
  const isNamed = /(?:Url|Endpoint)$|^(?:url|walletAddress)$/
  expect(options.filter((option) => !isNamed.test(option))).toEqual([])
})

test('every package with an entry is among those', () => {
  expect(workspaces).toEqual(['packages/*', 'programs', 'test/support'])
  expect(others).toHaveLength(9)
})
