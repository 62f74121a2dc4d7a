import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** A page of the site: its source, relative to the repository, and its path in the site. */
export interface Page {
  readonly title: string
  readonly source: string
  readonly path: string
  /** Whether `llms-full.txt` contains the page: what a host needs to know to write its code. */
  readonly isInFull?: boolean
}

export interface Section {
  readonly title: string
  readonly pages: readonly Page[]
}

const guide = (name: string, title: string): Page => ({
  title,
  source: `docs/${name}.md`,
  path: `${name}.md`,
})

const essential = (page: Page): Page => ({ ...page, isInFull: true })

const home: Page = { title: 'open-payments-server', source: 'site/index.md', path: 'index.md' }

/** The sections of the site, in order. Each page of `docs/` is in one of them. */
export const sections: readonly Section[] = [
  {
    title: 'Start',
    pages: [
      essential({ title: 'Introduction', source: 'README.md', path: 'introduction.md' }),
      essential(guide('getting-started', 'Getting started')),
      essential(guide('concepts', 'Concepts')),
      guide('stack', 'One stack from A to Z'),
      guide('account-servicing-entities', 'For account servicing entities'),
      guide('migrating-from-rafiki', 'Migrating from Rafiki'),
    ],
  },
  {
    title: 'Guides',
    pages: [
      essential(guide('mounting', 'Mount the servers')),
      guide('frameworks', 'Frameworks and runtimes'),
      guide('reverse-proxies', 'Reverse proxies'),
      essential(guide('grants', 'Show and revoke grants')),
      guide('pages', 'Show pages to owners'),
      guide('client-keys', 'Clients and their keys'),
      essential(guide('spending', 'Pay out, within limits')),
      guide('limits', 'Limits of owners'),
      guide('ilp', 'Receive and send over Interledger'),
      essential(guide('events', 'Consume events')),
      essential(guide('storage', 'Store, with your ledger')),
      guide('production', 'Run in production'),
      guide('telemetry', 'Measure and report'),
      guide('sizing', 'Size the database'),
    ],
  },
  {
    title: 'Reference',
    pages: [
      guide('api', 'The API on one page'),
      guide('options', 'Options'),
      guide('operations', 'Operations, deviations, limits'),
      guide('errors', 'Errors'),
      guide('clients', 'Tested clients'),
      guide('security', 'Threats and laws'),
      { title: 'Searches', source: 'assurance/README.md', path: 'assurance.md' },
      guide('architecture', 'Architecture and decisions'),
    ],
  },
  {
    title: 'Packages',
    pages: [
      {
        title: 'npm create',
        source: 'packages/create-open-payments-server/README.md',
        path: 'npm-create.md',
      },
      { title: 'Pages for owners', source: 'packages/pages/README.md', path: 'pages-package.md' },
      { title: 'Check a deployed wallet', source: 'packages/doctor/README.md', path: 'doctor.md' },
      {
        title: 'Test clients: a sandbox',
        source: 'packages/sandbox/README.md',
        path: 'sandbox.md',
      },
      { title: 'Pay on the command line', source: 'packages/cli/README.md', path: 'cli.md' },
      { title: 'Test your backend', source: 'packages/testing/README.md', path: 'testing-kit.md' },
      { title: 'Store for Kysely', source: 'packages/kysely/README.md', path: 'kysely-package.md' },
    ],
  },
  {
    title: 'Project',
    pages: [
      { title: 'Security policy', source: 'SECURITY.md', path: 'security-policy.md' },
      { title: 'Contributing', source: 'CONTRIBUTING.md', path: 'contributing.md' },
      { title: 'Changelog', source: 'CHANGELOG.md', path: 'changelog.md' },
    ],
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
