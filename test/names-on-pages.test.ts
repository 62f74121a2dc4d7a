import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

const folders = [
  ...['src', 'adapters', 'packages', 'programs', 'examples', 'workshop'],
  ...['docs', 'site', 'test', '.ci', '.github'],
]

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (/^(?:node_modules|dist|\.next)$/.test(entry.name)) return []
    return entry.isDirectory() ? filesIn(path) : [path]
  })
}

const read = (path: string) => readFileSync(path, 'utf8')
const files = [...folders.flatMap(filesIn), ...readdirSync('.')]
const isTest = (path: string) => path.endsWith('.test.ts')

/** A name, which may contain hyphens, such as that of an option or of a header field. */
const word = /(?<![\w-])[\p{L}_$][\w$-]*/gu
const wordsOf = (text: string) => text.match(word) ?? []
/** Names of one plain word are often values, and words of a sentence. */
const isCompound = (name: string) => /[a-z][A-Z]|_/.test(name)
/** The spans of code in prose. */
const spansOf = (prose: string) =>
  [...prose.matchAll(/(?<!`)(`+)(?!`)([\s\S]*?[^`])\1(?!`)/g)].map(([, , code = '']) => code)

interface Parts {
  readonly names: ReadonlySet<string>
  readonly comments: readonly string[]
}

const parts = new Map<string, Parts>()

/** Returns the names in the code of a file, without the words of its sentences and imports, and its comments. */
function partsOf(path: string): Parts {
  const known = parts.get(path)
  if (known !== undefined) return known
  const text = read(path)
  const names = new Set<string>()
  function visit(node: ts.Node): void {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
      for (const name of wordsOf(node.getText(file).split(' from ')[0] ?? '')) names.add(name)
      return
    }
    const isName = ts.isIdentifier(node) || ts.isTemplateLiteralToken(node)
    if (isName || ts.isStringLiteral(node)) {
      const isSentence = ts.isStringLiteral(node) && node.text.includes(' ')
      for (const name of wordsOf(node.text)) if (!isSentence || isCompound(name)) names.add(name)
    }
    ts.forEachChild(node, visit)
  }
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest)
  visit(file)
  const comments = text.match(/\/\*\*[\s\S]*?\*\/|^\s*\/\/.*$/gm) ?? []
  const found = { names, comments }
  parts.set(path, found)
  return found
}

const sources = files.filter((path) => path.endsWith('.ts') && !isTest(path))
const settings = files.filter(
  (path) =>
    /\.(?:json|sql|ya?ml|sh|env.*)$|^\.ci\/|Dockerfile/.test(path) && path !== 'package-lock.json',
)
const known = new Set([
  ...sources.flatMap((path) => [...partsOf(path).names]),
  ...settings.flatMap((path) => wordsOf(read(path))),
  ...files.flatMap((path) => path.split('/').flatMap((part) => [part, ...wordsOf(part)])),
])

/**
 * Whether code has a name: with its hyphens or in parts, a header field in any case, or several names that begin or
 * end with it, such as `debit_*`.
 */
function isKnown(name: string, among: ReadonlySet<string> = known): boolean {
  if (among.has(name) || among.has(name.replace(/^\$/, ''))) return true
  if (name.includes('-') && among.has(name.toLowerCase())) return true
  if (name.endsWith('_')) return [...among].some((each) => each.startsWith(name))
  if (name.startsWith('_')) return [...among].some((each) => each.endsWith(name))
  return name.includes('-') && name.split('-').every((part) => part === '' || among.has(part))
}

/** Names that are not ours, by who has them. */
const foreign: Readonly<Record<string, string>> = {
  'Rafiki and its configuration': `
    ACCESS_TOKEN_DELETION_DAYS ACCESS_TOKEN_EXPIRY_SECONDS AUTH_DATABASE_URL AUTH_SERVER_GRANT_URL AUTH_SERVER_URL
    DATABASE_CLEANUP_WORKERS EXCHANGE_RATES_URL IDENTITY_SERVER_URL ILP_ADDRESS INCOMING_PAYMENT_EXPIRY_MAX_MS
    INCOMING_PAYMENT_INTERACTION INTERACTION_EXPIRY_SECONDS LIST_ALL_ACCESS_INTERACTION OPEN_PAYMENTS_URL
    PaymentWithdrawal QUOTE_INTERACTION QUOTE_LIFESPAN STREAM_SECRET WAIT_SECONDS WEBHOOK_MAX_RETRY WEBHOOK_TIMEOUT
    additionalProperties approveIncomingPayment cancelIncomingPayment cancelOutgoingPayment clientUri createReceiver
    createAsset createOutgoingPaymentFromIncomingPayment createWalletAddress createWalletAddressKey
    depositOutgoingPaymentLiquidity interactId revokeWalletAddressKey setFee updateWalletAddress`,
  'clients and the specifications': `
    HTTPStatusError HttpClient JSON_UNESCAPED_SLASHES QueryEscape http_build_query json_encode TestGrantCancel
    TestRevokeToken cardAuthorization grantSpent invalid_interaction isFinalizedGrantWithSubject max_occurrences not_after
    not_before too_many_attempts`,
  databases: `
    allow_sql_comments binlog_format bytea_output client_encoding default_transaction_isolation lock_timeout
    quote_all_identifiers
    standard_conforming_strings transform_null_equals clientSideCache createCluster force_generic_plan
    hot_standby_feedback idle_transaction_timeout innodb_flush_log_at_trx_commit max_prepared_statements n_dead_tup
    n_live_tup pg_cancel_backend pg_drop_replication_slot pg_stat_user_tables plan_cache_mode synchronous_commit useReplicas
    utf8mb4_0900_bin wal_compression`,
  'platforms and frameworks': `
    NODE_OPTIONS checkOrigin trustedOrigins RESPONSE_ALREADY_SENT instanceof dataSource network_mode nodejs_compat
    onModuleDestroy open_payments_request_duration_seconds_count`,
  proxies: `
    ProxyErrorOverride connect_attempts_max_retries handle_path ip_allow lb_try_duration max_fails strip_prefix
    transaction_no_activity_timeout_out`,
  'examples on a page': 'oldKey removeNotices',
}

const ofOthers = new Set(Object.values(foreign).flatMap((names) => names.trim().split(/\s+/)))

const pages = files.filter((path) => path.endsWith('.md') && !path.startsWith('test/'))

/** Returns the names in the code of a page's prose that nothing has: no code, and no block of code on the page. */
function unknownOn(page: string, among?: ReadonlySet<string>): readonly string[] {
  const blocks: string[] = []
  const prose = read(page).replace(/^([ \t]*)(`{3,})[\s\S]*?^\1\2$/gm, (block) => {
    blocks.push(block)
    return ''
  })
  const shown = new Set(wordsOf(blocks.join('\n')))
  const names = spansOf(prose).flatMap(wordsOf)
  const others = names.filter((name) => !shown.has(name) && !ofOthers.has(name))
  return others.filter((name) => !isKnown(name, among))
}

describe('a name in code', () => {
  test.each(pages)('on %s is one of the code, or of others', (page) => {
    expect(unknownOn(page).filter(isCompound)).toEqual([])
  })

  test('on the page about the architecture is one of the library', () => {
    const { scripts } = JSON.parse(read('package.json'))
    const own = new Set([
      ...sources
        .filter((path) => /^(?:src|adapters)\//.test(path))
        .flatMap((path) => [...partsOf(path).names]),
      ...files.flatMap((path) => path.split('/')),
      ...['npm', ...Object.keys(scripts)],
    ])
    const unknown = unknownOn('docs/architecture.md', own)
    expect(unknown).toEqual([])
  })

  test('in a comment is one of the code, or of others', () => {
    const unknown = sources.flatMap((path) => {
      const prose = partsOf(path).comments.map((text) => text.replace(/```[\s\S]*?```/g, ''))
      const names = prose.flatMap(spansOf).flatMap(wordsOf)
      return names
        .filter((name) => isCompound(name) && !isKnown(name) && !ofOthers.has(name))
        .map((name) => `${path}: ${name}`)
    })
    expect(unknown).toEqual([])
  })

  test('of others is still named', () => {
    const text = [...pages.map(read), ...sources.flatMap((path) => partsOf(path).comments)].join(
      '\n',
    )
    const named = new Set(wordsOf(text))
    expect([...ofOthers].filter((name) => !named.has(name))).toEqual([])
  })
})
