import { readdirSync } from 'node:fs'
import { join } from 'node:path'

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
      essential(guide('stack', 'One stack from A to Z')),
      guide('account-servicing-entities', 'For account servicing entities'),
      guide('migrating-from-rafiki', 'Migrating from Rafiki'),
    ],
  },
  {
    title: 'Guides',
    pages: [
      essential(guide('mounting', 'Mount the servers')),
      guide('frameworks', 'Frameworks and runtimes'),
      essential(guide('grants', 'Show and revoke grants')),
      guide('pages', 'Show pages to owners'),
      guide('client-keys', 'Clients and their keys'),
      essential(guide('spending', 'Pay out, within limits')),
      guide('limits', 'Limits of owners'),
      guide('ilp', 'Receive and send over Interledger'),
      essential(guide('events', 'Consume events')),
      essential(guide('storage', 'Store, with your ledger')),
      essential(guide('production', 'Run in production')),
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
      guide('assurance', 'Searches'),
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

/** The pages that `typedoc` generates from the docstrings, by the name under which a module is imported. */
export function referencePages(repository: string): readonly Page[] {
  return readdirSync(`${repository}/site/reference`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .sort()
    .map((path) => ({
      title: path === 'index.md' ? 'All modules' : path.slice(0, -'.md'.length),
      source: `site/reference/${path}`,
      path: `reference/${path}`,
    }))
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
  return [home, ...listed, ...referencePages(repository)]
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
