import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** A page of the site: its source, relative to the repository, and its path in the site. */
export interface Page {
  readonly title: string
  readonly source: string
  readonly path: string
  /** What a reader finds there, in one sentence. */
  readonly description?: string
  /** Whether `llms-full.txt` contains the page: what a host needs to know to write its code. */
  readonly isInFull?: boolean
}

export interface Section {
  readonly title: string
  readonly pages: readonly Page[]
}

const guide = (name: string, title: string, description: string): Page => ({
  title,
  source: `docs/${name}.md`,
  path: `${name}.md`,
  description,
})

const essential = (page: Page): Page => ({ ...page, isInFull: true })

const home: Page = { title: 'open-payments-server', source: 'site/index.md', path: 'index.md' }

/** The sections of the site, in order. Each page of `docs/` is in one of them. */
export const sections: readonly Section[] = [
  {
    title: 'Start',
    pages: [
      essential({
        title: 'Introduction',
        source: 'README.md',
        path: 'introduction.md',
        description:
          'What the library does, a first wallet in 25 lines, and when Rafiki fits better.',
      }),
      guide('tasks', 'Tasks', 'From what you want to do to the section that shows it.'),
      essential(
        guide(
          'getting-started',
          'Getting started',
          'Serve a wallet, request a grant, and add both to your application.',
        ),
      ),
      essential(
        guide(
          'concepts',
          'Concepts',
          'The terms, and the messages between a client, the servers and your backend as diagrams.',
        ),
      ),
      guide(
        'stack',
        'One stack from A to Z',
        'A whole program on Fastify, Drizzle and PostgreSQL, with ledger, login and shutdown, to copy.',
      ),
      guide(
        'account-servicing-entities',
        'For account servicing entities and financial service providers',
        'The requirements of openpayments.dev, what meets each, and what remains for you.',
      ),
      guide(
        'migrating-from-rafiki',
        'Migrating from Rafiki',
        'What replaces each service and call, and how grants, keys and payments are imported.',
      ),
    ],
  },
  {
    title: 'Guides',
    pages: [
      essential(
        guide(
          'mounting',
          'Mounting',
          'Mount the servers in Express, Fastify, Hono or Fetch, in one process or in two.',
        ),
      ),
      guide(
        'frameworks',
        'Other frameworks and runtimes',
        'Complete programs for Koa, Nest, Next.js, Bun, Deno, Workers, Lambda and others.',
      ),
      guide(
        'reverse-proxies',
        'Reverse proxies',
        'What a proxy must pass on, with configurations for nginx, HAProxy, Apache, Caddy and Varnish.',
      ),
      essential(
        guide(
          'grants',
          'Grants, and who they are for',
          'List, narrow, pause and revoke what an owner has consented to.',
        ),
      ),
      guide(
        'pages',
        'Show pages to owners',
        'Consent, confirmation, connected apps, limits, keys and login as pages with your brand.',
      ),
      essential(
        guide(
          'client-keys',
          'Clients and their keys',
          'Which clients a wallet serves, where their keys and names come from, and rate limits.',
        ),
      ),
      essential(
        guide(
          'outgoing-payments',
          'Outgoing payments',
          'The steps of a payment, payments by the owner, and repeated requests, which pay once.',
        ),
      ),
      essential(
        guide('prices', 'Prices', 'What a payment debits and delivers, and receivers elsewhere.'),
      ),
      essential(
        guide(
          'holds',
          'Holds and decisions',
          'Hold, refuse or let the owner confirm a payment, and refuse arrivals.',
        ),
      ),
      essential(
        guide(
          'settlement',
          'Settlement',
          'Settle payments in your ledger or at a bank, also when a reply is lost, and refund them.',
        ),
      ),
      essential(
        guide(
          'limits',
          'Limits',
          'Limits of an owner for one app and for all apps, and what a client learns of them.',
        ),
      ),
      guide(
        'mandates',
        'Mandates and permission dashboards',
        'Commercial VRP, the dashboard of the EU and the mandates of agents, row by row with a test.',
      ),
      guide('ilp', 'Interledger', 'Receive and send funds over Interledger, with direct peers.'),
      essential(
        guide(
          'events',
          'Events and sweeps',
          'Consume each change at least once and in order, and end what has expired.',
        ),
      ),
      guide(
        'brokers',
        'Events in a broker',
        'RabbitMQ, NATS, pg-boss, SQS, Kafka and Temporal: what is once, and what is in order.',
      ),
      essential(
        guide(
          'storage',
          'Storage',
          'The stores, your ledger in the same transaction, and the contract of a store.',
        ),
      ),
      guide(
        'production',
        'In production',
        'A checklist, time-outs, poolers, upgrades, backups, readiness, and remedies by symptom.',
      ),
      guide(
        'telemetry',
        'Telemetry and reports',
        'Spans, metrics, alerts, and SQL views for operators, finance and support.',
      ),
      guide(
        'sizing',
        'Sizing',
        'Statements and bytes of each operation, and how to grow beyond one database.',
      ),
    ],
  },
  {
    title: 'Reference',
    pages: [
      guide('api', 'The API on one page', 'Every export of the main entry, in one line each.'),
      guide('options', 'Options', 'Every option, its default, and what it is for.'),
      guide(
        'operations',
        'Operations and deviations',
        'Every HTTP operation with its responses, and each difference from the specifications.',
      ),
      essential(
        guide('errors', 'Errors', 'Every refusal: status, code, text, meaning and remedy.'),
      ),
      guide(
        'clients',
        'Tested clients',
        'What published clients in six languages send, and what they do with each answer.',
      ),
      guide('security', 'Threats and laws', 'Each threat with the test that tries the attack.'),
      {
        title: 'Workshop',
        source: 'workshop/README.md',
        path: 'workshop.md',
        description:
          'The simulations, models and injected faults that search for broken laws, and the benchmarks.',
      },
      guide(
        'architecture',
        'Architecture',
        'The layers of the code, an operation followed through them, and the decisions.',
      ),
    ],
  },
  {
    title: 'Packages',
    pages: [
      {
        title: 'npm create',
        source: 'packages/create-open-payments-server/README.md',
        path: 'npm-create.md',
        description: 'Generates a working wallet on your framework and database.',
      },
      {
        title: 'Pages for owners',
        source: 'packages/pages/README.md',
        path: 'pages-package.md',
        description: 'The pages of owners as handlers for every framework, in four languages.',
      },
      {
        title: 'Check a deployed wallet',
        source: 'packages/doctor/README.md',
        path: 'doctor.md',
        description: 'The doctor finds what breaks a deployed wallet, and a suite tests a server.',
      },
      {
        title: 'Test clients: a sandbox',
        source: 'packages/sandbox/README.md',
        path: 'sandbox.md',
        description: 'Two wallets for the tests of apps and SDKs, with a clock and faults.',
      },
      essential({
        title: 'Pay and receive at other wallets',
        source: 'packages/client/README.md',
        path: 'client.md',
        description: 'A client for hosts and apps: receivers, grants, quotes and payments.',
      }),
      {
        title: 'Pay on the command line',
        source: 'packages/cli/README.md',
        path: 'cli.md',
        description: 'A client on the command line: keys, grants, quotes and payments.',
      },
      essential({
        title: 'Test your backend',
        source: 'packages/testing/README.md',
        path: 'testing-kit.md',
        description: 'Suites for stores and holds, and a search for payments beyond their limits.',
      }),
      {
        title: 'Store for Kysely',
        source: 'packages/kysely/README.md',
        path: 'kysely-package.md',
        description: 'A store on Kysely for PostgreSQL, MariaDB, MySQL and SQLite.',
      },
      {
        title: 'Store for DynamoDB',
        source: 'packages/dynamodb/README.md',
        path: 'dynamodb-package.md',
        description: 'A store on Amazon DynamoDB: its table, its limits, and what it costs.',
      },
      {
        title: 'Interledger',
        source: 'packages/ilp/README.md',
        path: 'ilp-package.md',
        description: 'Pays and is paid over Interledger, with books that can be proved.',
      },
      {
        title: 'From Rafiki',
        source: 'packages/rafiki/README.md',
        path: 'rafiki-package.md',
        description: 'The webhooks of Rafiki, and the import of its grants, addresses and keys.',
      },
    ],
  },
  {
    title: 'Project',
    pages: [
      {
        title: 'Security policy',
        source: 'SECURITY.md',
        path: 'security-policy.md',
        description: 'How to report a vulnerability.',
      },
      {
        title: 'Contributing',
        source: 'CONTRIBUTING.md',
        path: 'contributing.md',
        description: 'How the project is built, tested and released.',
      },
      {
        title: 'Changelog',
        source: 'CHANGELOG.md',
        path: 'changelog.md',
        description: 'What changed in each version.',
      },
    ],
  },
]

/** A section that concerns money, and what a host has to know of it. */
export interface MoneySection {
  readonly title: string
  /** The path of the page in the site, with the id of the heading. */
  readonly place: string
  readonly sentence: string
}

/** What a host reads before its code moves money: `llms.txt` begins with it. */
export const moneySections: readonly MoneySection[] = [
  {
    title: 'Settle a payment',
    place: 'settlement.md#settle-a-payment',
    sentence: 'Begin, send, and report in the transaction that debits the payer.',
  },
  {
    title: 'Payments between your own accounts',
    place: 'settlement.md#payments-between-your-own-accounts',
    sentence: 'Debit and credit both in one transaction.',
  },
  {
    title: 'When a reply can be lost',
    place: 'settlement.md#when-a-reply-can-be-lost',
    sentence: 'Ask what became of an attempt before money is sent again.',
  },
  {
    title: 'The attempts',
    place: 'reference/open-payments-server/attempts/index.md',
    sentence: 'The functions that record each attempt and prove what it has sent.',
  },
  {
    title: 'A part in doubt',
    place: 'settlement.md#a-part-in-doubt',
    sentence: 'Fail the payment, and decide later what has left: with `attempts`, at the driver.',
  },
  {
    title: 'Post to a ledger',
    place: 'settlement.md#post-to-a-ledger',
    sentence: 'Debit what each report returns as `debit`: parts, ends and refunds, once.',
  },
  {
    title: 'A fee',
    place: 'prices.md#a-fee',
    sentence: '`debitAmount` includes your fee; round so that no unit is lost.',
  },
  {
    title: 'Hold funds',
    place: 'holds.md#whether-a-payment-may-be-made',
    sentence: 'Hold by the id of the payment in `mayPay`, and release at its one final event.',
  },
  {
    title: 'A hold in PostgreSQL',
    place: 'holds.md#a-hold-in-postgresql',
    sentence: 'One lock for each account, one row for each payment, and a mark at its release.',
  },
  {
    title: 'An arrival that waits for a review',
    place: 'holds.md#an-arrival-that-waits-for-a-review',
    sentence: 'Neither credit nor return it, and report the same transfer again.',
  },
  {
    title: 'Reserve, ask, create',
    place: 'holds.md#reserve-ask-create',
    sentence: 'When `mayPay` is asked again, and what a refusal means for ever.',
  },
  {
    title: 'Repeated requests',
    place: 'outgoing-payments.md#repeated-requests',
    sentence: 'A quote or a key pays once, whatever is repeated.',
  },
  {
    title: 'Payments by the owner',
    place: 'outgoing-payments.md#payments-by-the-owner',
    sentence: 'Pay from your own app, with a key that is kept for at least 400 days.',
  },
  {
    title: 'Credit incoming funds',
    place: 'getting-started.md#incoming-funds',
    sentence: 'Credit if `receive` is `changed`; return funds only after `close`.',
  },
  {
    title: 'A standing order',
    place: 'outgoing-payments.md#a-standing-order',
    sentence: 'One row, one key and one receiver for each month, also after a restore.',
  },
  {
    title: 'Refunds',
    place: 'settlement.md#refunds',
    sentence: 'Pay back all or a part to the wallet address of the payer; you bound the sum.',
  },
  {
    title: 'Errors',
    place: 'errors.md#what-it-means-and-what-helps',
    sentence: 'What each refusal means, and whether anything was paid.',
  },
  {
    title: 'Refusals of your own calls',
    place: 'errors.md#refusals-of-the-hosts-own-calls',
    sentence: 'What `ok: false` of a call means.',
  },
  {
    title: 'Test your holds',
    place: 'testing-kit.md#test-your-own-holds',
    sentence: 'A suite for what `mayPay` and your handlers do with money.',
  },
]

/** A module of the API reference, and the pages of its symbols. */
export interface Module {
  readonly page: Page
  readonly symbols: readonly Page[]
}

/** The symbols with which a host begins. They come first; then functions, classes, values and types. */
const first = ['createWallet', 'consumeEvents', 'runSweeps', 'postgresStore', 'toExpress']
const kinds = ['functions', 'classes', 'variables', 'interfaces', 'type-aliases']

/** The modules of the API reference, which `typedoc` generates from the docstrings: the library, then the others. */
export function referenceModules(repository: string): readonly Module[] {
  const root = `${repository}/site/reference`
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' })
  const names = paths
    .filter((path) => path.endsWith('/index.md'))
    .map((path) => path.slice(0, -'/index.md'.length))
  const ranked = names.sort((one, other) => rank(one) - rank(other) || one.localeCompare(other))
  return ranked.map((name) => {
    const symbols = paths
      .filter((path) => path.endsWith('.md') && dirname(dirname(path)) === name)
      .filter((path) => kinds.includes(basename(dirname(path))))
      .sort((one, other) => place(one) - place(other) || one.localeCompare(other))
    return {
      page: referencePage(`${name}/index.md`, name),
      symbols: symbols.map((path) => referencePage(path, basename(path, '.md'))),
    }
  })
}

const rank = (name: string) => (/^open-payments-server(\/|$)/.test(name) ? 0 : 1)

function place(path: string): number {
  const index = first.indexOf(basename(path, '.md'))
  return index === -1 ? first.length + kinds.indexOf(basename(dirname(path))) : index
}

function referencePage(path: string, title: string): Page {
  return { title, source: `site/reference/${path}`, path: `reference/${path}` }
}

/**
 * Returns all pages of the site.
 *
 * @throws `Error` if a page of `docs/` is in no section.
 */
export function pagesOf(repository: string): readonly Page[] {
  const listed = sections.flatMap(({ pages }) => pages)
  for (const name of readdirSync(`${repository}/docs`)) {
    if (name.endsWith('.md') && !listed.some(({ source }) => source === `docs/${name}`)) {
      throw new Error(`docs/${name} is in no section of site/.vitepress/pages.ts`)
    }
  }
  const modules = referenceModules(repository)
  const reference = modules.flatMap(({ page, symbols }) => [page, ...symbols])
  return [home, ...listed, referencePage('index.md', 'API reference'), ...reference]
}

/** Returns the Markdown files of the repository, except in installed packages and hidden folders. */
export function markdownFiles(repository: string, folder = ''): readonly string[] {
  return readdirSync(join(repository, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (/^(node_modules|\..*)$/.test(entry.name)) return []
    if (entry.isDirectory()) return markdownFiles(repository, path)
    return entry.name.endsWith('.md') ? [path] : []
  })
}

/** Where the site is published. `SITE_URL` replaces it, such as `https://docs.example/payments/`. */
export const siteUrl = new URL(
  process.env['SITE_URL'] ?? 'https://open-payments-server.github.io/open-payments-server/',
)
