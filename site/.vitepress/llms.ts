import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { resolveLink } from './links.ts'
import { moneySections, type Page, type Section, sections, siteUrl } from './pages.ts'

/** Where the pages are, and where the site is built. */
interface Build {
  readonly repository: string
  readonly pages: readonly Page[]
  readonly outDir: string
}

/**
 * Writes the pages as Markdown beside their HTML, `llms.txt`, which lists them, and `llms-full.txt`, which contains
 * the essential ones. All links are absolute.
 *
 * @see https://llmstxt.org
 */
export function writeForModels(build: Build): void {
  const { pages, outDir } = build
  const texts = new Map(pages.map((page) => [page.path, markdownOf(page, build)]))
  for (const [path, text] of texts) {
    mkdirSync(dirname(join(outDir, path)), { recursive: true })
    writeFileSync(join(outDir, path), text)
  }
  const reference = pages.filter(({ path }) => /^reference\/.*\bindex\.md$/.test(path))
  const all: readonly Section[] = [...sections, { title: 'API reference', pages: reference }]
  const lists = all.map(({ title, pages }) => {
    const lines = pages.map((page) => {
      const sentence = page.description ?? sentenceOf(texts.get(page.path) ?? '')
      return `- [${page.title}](${siteUrl}${page.path}): ${sentence}`
    })
    return `## ${title}\n\n${lines.join('\n')}\n`
  })
  const head = `# open-payments-server\n\n> ${summaryOf(texts.get('introduction.md') ?? '')}\n`
  const money = moneySections.map(({ title, place, sentence }) => {
    return `- [${title}](${siteUrl}${place}): ${sentence}`
  })
  const essentials = `## Essential for money\n\n${money.join('\n')}\n`
  writeFileSync(join(outDir, 'llms.txt'), [head, essentials, ...lists].join('\n'))
  const essential = pages.filter(({ isInFull }) => isInFull).map(({ path }) => texts.get(path))
  writeFileSync(join(outDir, 'llms-full.txt'), essential.join('\n\n'))
}

function markdownOf({ source }: Page, { repository, pages }: Build): string {
  const text = readFileSync(join(repository, source), 'utf8')
  const linked = text.replace(/\]\(([^()\s]+)\)/g, (_, link: string) => {
    const target = resolveLink(repository, pages, source, link)
    return `](${target.startsWith('/') ? siteUrl + target.slice(1) : target})`
  })
  return linked.replace(/^---\n[\s\S]*?\n---\n/, '').replace(/^<!-- .* -->\n/gm, '')
}

/** Returns the first sentence of a module of the reference, as its docstring has it. */
function sentenceOf(text: string): string {
  return summaryOf(text).match(/^.*?\.(?= |$)/)?.[0] ?? 'The modules, and what each exports.'
}

/** Returns the first sentences of a page: the paragraph after its title, without links. */
function summaryOf(text: string): string {
  const paragraph = text.split(/\n\n/).find((block) => /^(?!```)[A-Za-z`[*]/.test(block)) ?? ''
  return paragraph
    .replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replace(/\s+/g, ' ')
    .trim()
}
