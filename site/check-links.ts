import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, posix, relative } from 'node:path'
import { siteUrl } from './.vitepress/pages.ts'

/**
 * Checks that each link of the built site leads to a file of it, and to an element with the id that it names, and that
 * `llms-full.txt` is small enough to be read at once.
 */

const root = 'dist'
const base = siteUrl.pathname
const fullBytesMax = 270_000

interface HtmlPage {
  readonly ids: ReadonlySet<string>
  readonly links: ReadonlySet<string>
}

const entries = readdirSync(root, { recursive: true, withFileTypes: true })
const files = new Set(
  entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(root, join(parentPath, name))),
)
const pages = new Map(
  [...files].filter((file) => file.endsWith('.html')).map((file) => [file, readPage(file)]),
)

function readPage(file: string): HtmlPage {
  const html = readFileSync(join(root, file), 'utf8')
  return { ids: attributes(html, 'id'), links: attributes(html, 'href') }
}

function attributes(html: string, name: string): ReadonlySet<string> {
  const found = html.matchAll(new RegExp(`<[a-z][^>]*? ${name}="([^"]*)"`, 'g'))
  return new Set(
    [...found].map(([, value = '']) => decodeURIComponent(value.replaceAll('&amp;', '&'))),
  )
}

/** Returns what is wrong with a link, if anything. */
function problemOf(from: string, link: string): string | undefined {
  const isLocal = link.startsWith(siteUrl.href)
  if (!isLocal && /^[a-z]+:/.test(link)) return undefined
  const [url = '', hash = ''] = (isLocal ? base + link.slice(siteUrl.href.length) : link).split('#')
  const file = url === '' ? from : fileAt(from, url)
  if (file === undefined) return 'no such file'
  const isFound = hash === '' || pages.get(file.replace(/\.md$/, '.html'))?.ids.has(hash)
  return isFound ? undefined : 'no such heading'
}

function fileAt(from: string, url: string): string | undefined {
  const path = url.startsWith(base) ? url.slice(base.length) : posix.join(posix.dirname(from), url)
  return [path, `${path}.html`, posix.join(path, 'index.html')].find((file) => files.has(file))
}

const list = readFileSync(join(root, 'llms.txt'), 'utf8')
const listed = [...list.matchAll(/^- \[[^\]]*\]\(([^)]+)\)/gm)].map(([, link = '']) => link)
const links = [
  ...[...pages].flatMap(([from, page]) => [...page.links].map((link) => ({ from, link }))),
  ...listed.map((link) => ({ from: 'llms.txt', link })),
]
const broken = links.flatMap(({ from, link }) => {
  const problem = problemOf(from, link)
  return problem === undefined ? [] : [`${from}: ${link}: ${problem}`]
})
const fullBytes = statSync(join(root, 'llms-full.txt')).size
if (fullBytes > fullBytesMax) broken.push(`llms-full.txt: ${fullBytes} of ${fullBytesMax} bytes`)
if (listed.some((link) => !/^https?:/.test(link))) broken.push('llms.txt: a link is not absolute')
const bare = list.match(/^- .*[^.\n]$/gm) ?? []
if (bare.length > 0) broken.push(`llms.txt: no sentence says what is there: ${bare.join(', ')}`)
for (const problem of broken) console.error(problem)
console.log(`${pages.size} pages, ${links.length} links, ${broken.length} problems`)
process.exitCode = broken.length === 0 ? 0 : 1
