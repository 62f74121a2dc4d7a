import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type DefaultTheme, defineConfig, type MarkdownOptions, type UserConfig } from 'vitepress'
import { renderDiagram } from './diagram.ts'
import { resolveLink } from './links.ts'
import { writeForModels } from './llms.ts'
import {
  type Module,
  markdownFiles,
  type Page,
  pagesOf,
  referenceModules,
  sections,
  siteUrl,
} from './pages.ts'
import { preferGuides, taskWords, withTasks, words } from './search.ts'

const site = dirname(dirname(fileURLToPath(import.meta.url)))
const repository = dirname(site)
const pages = pagesOf(repository)
const sources = pages.map(({ source }) => source)
const tasks = taskWords(repository)

type Plugin = Extract<
  NonNullable<NonNullable<UserConfig['vite']>['plugins']>[number],
  { name: string }
>
type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0]

/** Leads the links of the documents, which are those of the repository, to the pages of the site. */
function resolveLinks(md: MarkdownIt): void {
  md.core.ruler.push('repository-links', ({ tokens, env }) => {
    const source = relative(repository, env.realPath ?? env.path)
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const link = token.type === 'link_open' ? token.attrGet('href') : null
      if (link !== null) token.attrSet('href', resolveLink(repository, pages, source, link))
    }
  })
}

/** Returns the id of a heading as GitHub does, so that a link to it leads there on both. */
function githubSlug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

/** Renders code blocks in the language `mermaid` as diagrams. */
function renderDiagrams(md: MarkdownIt): void {
  const { fence } = md.renderer.rules
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const token = tokens[index]
    if (token?.info.trim() === 'mermaid') return renderDiagram(token.content)
    return fence?.(tokens, index, ...rest) ?? ''
  }
}

/** Finds Vue in the packages of the site for the pages, which are outside of its folder. */
const vueOfSite: Plugin = {
  name: 'vue-of-site',
  enforce: 'pre',
  resolveId(id, _importer, { ssr }) {
    if (!/^vue(\/|$)/.test(id)) return null
    return ssr
      ? { id, external: true }
      : this.resolve(id, join(site, 'index.md'), { skipSelf: true })
  },
}

function sidebarItems(of: readonly Page[]): DefaultTheme.SidebarItem[] {
  return of.map(({ title, path }) => ({ text: title, link: `/${path.replace(/\.md$/, '')}` }))
}

const modules = referenceModules(repository)
const allModules = sidebarItems(modules.map(({ page }) => page))

/** The symbols of one module, and the way to the others. */
function sidebarOf({ page, symbols }: Module): DefaultTheme.SidebarMulti {
  const items = [{ text: 'API reference', items: allModules, collapsed: true }]
  const own = { text: page.title, items: sidebarItems(symbols) }
  return { [`/${dirname(page.path)}/`]: [own, ...items] }
}

/** Shows `- [ ]` at the beginning of an item as a box to tick. */
function showBoxes(md: MarkdownIt): void {
  md.core.ruler.push('boxes', ({ tokens }) => {
    for (const { children } of tokens) {
      const [text] = children ?? []
      if (text?.type === 'text') text.content = text.content.replace(/^\[ \] /, '☐ ')
    }
  })
}

export default defineConfig({
  title: 'open-payments-server',
  description: 'Serve Open Payments from your own accounts',
  base: siteUrl.pathname,
  srcDir: relative(site, repository),
  srcExclude: markdownFiles(repository).filter((file) => !sources.includes(file)),
  rewrites: Object.fromEntries(pages.map(({ source, path }) => [source, path])),
  outDir: join(site, 'dist'),
  cleanUrls: true,
  metaChunk: true, // the sidebars, once for all pages
  vite: { plugins: [vueOfSite], build: { chunkSizeWarningLimit: 2_000 } },
  markdown: {
    anchor: { slugify: githubSlug },
    config(md) {
      resolveLinks(md)
      renderDiagrams(md)
      showBoxes(md)
    },
  },
  themeConfig: {
    nav: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Concepts', link: '/concepts' },
      { text: 'API reference', link: '/reference/open-payments-server/functions/createWallet' },
    ],
    sidebar: {
      '/': [
        ...sections.map(({ title, pages }) => ({ text: title, items: sidebarItems(pages) })),
        { text: 'API reference', collapsed: true, items: allModules },
      ],
      ...Object.assign({}, ...modules.map(sidebarOf)),
    },
    search: {
      provider: 'local',
      options: {
        miniSearch: { options: words, searchOptions: preferGuides },
        _render(text, env, md) {
          const html = md.render(text, env)
          return withTasks(html, relative(repository, env.path), tasks)
        },
      },
    },
    outline: [2, 3],
    socialLinks: [
      { icon: 'github', link: 'https://github.com/open-payments-server/open-payments-server' },
    ],
  },
  transformPageData({ relativePath, frontmatter }) {
    const description = pages.find(({ path }) => path === relativePath)?.description
    const isReference = relativePath.startsWith('reference/')
    return {
      ...(description !== undefined && { description }),
      ...(isReference && { frontmatter: { ...frontmatter, pageClass: 'reference' } }),
    }
  },
  buildEnd({ outDir }) {
    writeForModels({ repository, pages, outDir })
  },
})
