import ts from 'typescript'
import { checker, exportsOf } from '../../test/support/entries.js'

const exported = exportsOf('open-payments-server')
const settlements = exportsOf('open-payments-server/attempts')

/** A longer first sentence is cut at its first colon or semicolon. */
const clauseMax = 130

function sentencesOf(symbol: ts.Symbol): readonly string[] {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker))
  const line = text.replaceAll('|', '\\|').replace(/\s+/g, ' ')
  return line.split(/(?<=[.)]) (?=[A-Z`-])/)
}

/** Returns the first sentence of the docstring of a member, or of its type. */
function summaryOf(symbol: ts.Symbol): string {
  const type = checker.getNonNullableType(checker.getTypeOfSymbol(symbol))
  const named = type.aliasSymbol ?? type.symbol
  const [first = ''] = [symbol, ...(named ? [named] : [])].flatMap(sentencesOf)
  if (first === '') throw new Error(`${symbol.name} has no docstring`)
  const [clause = ''] = first.length > clauseMax ? first.split(/[:;] /) : [first]
  return `${clause.replace(/\.$/, '')}.`
}

/** Returns how a function is called, with `?` behind an argument that may be left out. */
function callOf(name: string, type: ts.Type): string | undefined {
  const [signature] = type.getCallSignatures()
  if (signature === undefined) return undefined
  const names = signature.parameters.map((parameter) => {
    const { valueDeclaration: node } = parameter
    const isOptional =
      node !== undefined && ts.isParameter(node) && checker.isOptionalParameter(node)
    const isNamed = node !== undefined && ts.isParameter(node) && ts.isIdentifier(node.name)
    return `${isNamed ? parameter.name : 'options'}${isOptional ? '?' : ''}`
  })
  return `${name}(${names.join(', ')})`
}

/** Lists the members of an object, and the functions of the objects in it that this library declares. */
function membersOf(name: string, type: ts.Type): readonly (readonly [string, string])[] {
  return type.getProperties().flatMap((symbol) => {
    if (symbol.name.startsWith('__@')) return []
    const path = `${name}.${symbol.name}`
    const member = checker.getNonNullableType(checker.getTypeOfSymbol(symbol))
    const inner = (member.aliasSymbol ?? member.symbol)?.name ?? ''
    // Both servers have the same events.
    if (path === 'resources.events') return [[path, 'As `auth.events`.'] as const]
    const isServices = /(?:Services|Interactions|ServerEvents)$/.test(inner)
    if (isServices) return membersOf(path, member)
    return [[callOf(path, member) ?? path, summaryOf(symbol)] as const]
  })
}

/** The objects of a wallet, by the names that the documents use. */
const objects = [
  ['wallet', 'Wallet'],
  ['auth', 'AuthorizationServer'],
  ['resources', 'ResourceServer'],
  ['addresses', 'WalletAddressServer'],
] as const

/** Returns the table of all members of a wallet and its servers. */
export function memberTable(): string {
  const rows = objects.flatMap(([name, exportName]) => {
    const symbol = exported.get(exportName)
    if (symbol === undefined) throw new Error(`${exportName} is not exported`)
    return membersOf(name, checker.getDeclaredTypeOfSymbol(symbol))
  })
  return tableOf(['member of a wallet', ''], rows.map(codeFirst))
}

/** Returns the table of the functions and errors that the main entry exports. */
export function valueTable(): string {
  return tableOf(['export', ''], valuesOf(exported).map(codeFirst))
}

/** Returns the table of the driver of settlements, and of the functions of its entry. */
export function settlementTable(): string {
  const driver = settlements.get('Attempts')
  if (driver === undefined) throw new Error('Attempts is not exported')
  const members = membersOf('settlements', checker.getDeclaredTypeOfSymbol(driver))
  return tableOf(['of settlements', ''], [...members, ...valuesOf(settlements)].map(codeFirst))
}

function valuesOf(symbols: typeof exported): readonly (readonly [string, string])[] {
  const values = [...symbols.values()].filter(({ flags }) => flags & ts.SymbolFlags.Value)
  return values.map((symbol) => {
    const type = checker.getTypeOfSymbol(symbol)
    return [callOf(symbol.name, type) ?? symbol.name, summaryOf(symbol)] as const
  })
}

const codeFirst = ([call, summary]: readonly [string, string]) => [`\`${call}\``, summary]

/** The functions whose options are listed, and the type of these. An option of several is listed once. */
const optionTypes = [
  ['createWallet', 'WalletOptions'],
  ['createAuthorizationServer', 'AuthorizationServerOptions'],
  ['createResourceServer', 'ResourceServerOptions'],
  ['createWalletAddressServer', 'WalletAddressServerOptions'],
  ['guardedFetch', 'GuardedFetchOptions'],
  ['remoteClientKeys', 'RemoteClientKeysOptions'],
  ['remoteGrants', 'RemoteGrantsOptions'],
  ['ilpPaymentMethods', 'IlpPaymentMethodsOptions'],
  ['createSignatureVerifier', 'SignatureVerifierOptions'],
  ['consumeEvents', 'ConsumeOptions'],
  ['runSweeps', 'RunSweepsOptions'],
  ['attempts', 'AttemptsOptions'],
  ['settlementHandler', 'SettlementHandlerOptions'],
] as const

/** Returns the tables of all options, by the function that takes them. */
export function optionTables(): ReadonlyMap<string, string> {
  const listed = new Set<ts.Node | undefined>()
  const tables = new Map<string, string>()
  for (const [name, typeName] of optionTypes) {
    const symbol = exported.get(typeName) ?? settlements.get(typeName)
    if (symbol === undefined) throw new Error(`${typeName} is not exported`)
    const options = propertiesOf(checker.getDeclaredTypeOfSymbol(symbol))
    const rows = options.flatMap((option) => optionRows(option, '', listed))
    if (rows.length > 0) tables.set(name, tableOf([`option of \`${name}\``, 'default', ''], rows))
  }
  return tables
}

/** Without those whose names are symbols. */
function propertiesOf(type: ts.Type): readonly ts.Symbol[] {
  return type.getProperties().filter(({ name }) => !name.startsWith('__@'))
}

/** Returns the row of an option, or the rows of a group of options, without those that are in `listed`. */
function optionRows(
  symbol: ts.Symbol,
  prefix: string,
  listed: Set<ts.Node | undefined>,
): readonly (readonly string[])[] {
  const path = `${prefix}${symbol.name}`
  const type = checker.getNonNullableType(checker.getTypeOfSymbol(symbol))
  if (isGroup(type)) {
    return propertiesOf(type).flatMap((each) => optionRows(each, `${path}.`, listed))
  }
  const [declaration] = symbol.declarations ?? []
  if (listed.has(declaration)) return []
  listed.add(declaration)
  const isRequired = (symbol.flags & ts.SymbolFlags.Optional) === 0
  const given = sentencesOf(symbol).find((each) => each.startsWith('Default')) ?? ''
  const byDefault = isRequired ? 'required' : given.replace(/^Default:? |\.$/g, '')
  return [[`\`${path}\``, byDefault, summaryOf(symbol)]]
}

/** Whether an option is an object of further options: a literal type, a policy, or both policies at once. */
function isGroup(type: ts.Type): boolean {
  if (type.isIntersection()) return type.types.every(isGroup)
  if ((type.flags & ts.TypeFlags.Object) === 0) return false
  const { name = '' } = type.symbol ?? {}
  const isLiteral = name === '__type' && type.getCallSignatures().length === 0
  return (isLiteral && type.aliasSymbol === undefined) || /(?:Policy|Options)$/.test(name)
}

function tableOf(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(headings), `|${'---|'.repeat(headings.length)}`, ...rows.map(line)].join('\n')
}
