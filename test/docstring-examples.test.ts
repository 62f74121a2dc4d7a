import { resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { checker, compilerOptions, exportsOf, library, others } from './support/entries.js'

const entries = [...library, ...others]

/** What a host has already, so that an example shows one function. Most examples need none of it. */
const context = `
import type { Pool } from 'pg'
import type * as server from 'open-payments-server'
import type * as core from 'open-payments-server/core'
import type { HttpRequest } from 'open-payments-server/adapter'
import type * as postgres from 'open-payments-server/postgres'
import type { ConnectedApp, Locale } from 'open-payments-pages'

declare global {
  const wallet: server.Wallet
  const accounts: server.WalletAddresses
  const paymentMethods: server.IlpPaymentMethods
  const pricing: server.Pricing
  const store: server.Store
  const pool: Pool
  const drizzle: postgres.DrizzleDatabase<object>
  const sql: postgres.DrizzleSql
  const knex: postgres.KnexDatabase<object>
  const prisma: postgres.PrismaDatabase<object>
  const dataSource: postgres.TypeormDatabase<object>
  const request: HttpRequest

  const grant: core.Grant
  const grantPolicy: core.GrantPolicy
  const incomingPayment: core.IncomingPayment
  const outgoingPayment: core.OutgoingPayment
  const item: core.GrantedItem
  const spending: core.Spending

  const view: server.InteractionView
  const apps: readonly ConnectedApp[]
  const locale: Locale
}
`

/** Returns the code of the examples in the docstring of an export. */
function examplesOf(symbol: ts.Symbol): readonly string[] {
  return symbol
    .getJsDocTags(checker)
    .filter((tag) => tag.name === 'example')
    .map(({ text }) => ts.displayPartsToString(text))
    .map((text) => /^```ts\n([\s\S]*)\n```$/.exec(text.trim())?.[1] ?? '')
}

const values = entries.flatMap((entry) =>
  [...exportsOf(entry)]
    .filter(([, symbol]) => symbol.flags & ts.SymbolFlags.Value)
    .map(([name, symbol]) => ({ entry, name, examples: examplesOf(symbol) })),
)

describe('each value that an entry exports has an example', () => {
  test.each(entries)('%s', (name) => {
    const own = values.filter(({ entry }) => entry === name)
    expect(own.filter(({ examples }) => examples.length === 0)).toEqual([])
  })

  test('which shows it', () => {
    const silent = values.filter(({ name, examples }) =>
      examples.some((code) => !new RegExp(`\\b${name}\\b`).test(code)),
    )
    expect(silent.map(({ name }) => name)).toEqual([])
  })
})

test('each export says what it is', () => {
  const silent = entries.flatMap((entry) =>
    [...exportsOf(entry)]
      .filter(([, symbol]) => symbol.getDocumentationComment(checker).length === 0)
      .map(([name]) => `${entry}: ${name}`),
  )
  expect(silent).toEqual([])
})

test('each union of refusals says that it grows, outside of the unstable core', () => {
  const unions = entries
    .filter((entry) => !/\/core$/.test(entry))
    .flatMap((entry) => [...exportsOf(entry)])
    .filter(([name, { flags }]) => /Refusal$/.test(name) && flags & ts.SymbolFlags.TypeAlias)
  const silent = unions.filter(([, symbol]) => {
    const text = ts.displayPartsToString(symbol.getDocumentationComment(checker))
    return !/\bversions add members\b/.test(text.replaceAll(/\s+/g, ' '))
  })
  expect(unions.length).toBeGreaterThan(15)
  expect(silent.map(([name]) => name)).toEqual([])
})

test('the examples compile', { timeout: 120_000 }, () => {
  // An error may be exported by several entries.
  const examples = [...new Set(values.flatMap((value) => value.examples))]
  expect(examples.length).toBeGreaterThan(90)
  const sources = new Map([[resolve('test/example-context.ts'), context]])
  for (const [index, code] of examples.entries()) {
    sources.set(resolve(`test/example-${index}.ts`), `${code}\nexport {}\n`)
  }
  const program = programOf(sources)
  const problems = [...sources.keys()].flatMap((name) => {
    const file = program.getSourceFile(name)
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
  })
  const texts = problems.map(({ file, messageText, start = 0 }) => {
    const { line = 0 } = file?.getLineAndCharacterOfPosition(start) ?? {}
    const text = ts.flattenDiagnosticMessageText(messageText, ' ')
    return `${file?.text.split('\n')[line]}: ${text}`
  })
  expect(texts).toEqual([])
})

/** Compiles texts as files of this repository. */
function programOf(sources: ReadonlyMap<string, string>): ts.Program {
  const { options } = ts.convertCompilerOptionsFromJson(compilerOptions, '.')
  const settings = { ...options, noUnusedLocals: false, noUnusedParameters: false }
  const host = ts.createCompilerHost(settings)
  return ts.createProgram([...sources.keys()], settings, {
    ...host,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
    fileExists: (file) => sources.has(file) || host.fileExists(file),
    readFile: (file) => sources.get(file) ?? host.readFile(file),
    getSourceFile(file, version, ...rest) {
      const text = sources.get(file)
      if (text !== undefined) return ts.createSourceFile(file, text, version)
      return host.getSourceFile(file, version, ...rest)
    },
  })
}
