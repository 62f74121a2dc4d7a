import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * How the search of the site ranks its results: guides first, then the API reference, except the page of a symbol for
 * its name. The browser gets these functions as text, so they use nothing outside of themselves.
 */
export const preferGuides = {
  /** Returns how many letters of a word may differ: none of a short one, which would find another word. */
  fuzzy: (word: string): number | false => (word.length > 4 ? 0.2 : false),
  /** Returns the factor of a result. The term is one of the page, which the searched one can begin. */
  boostDocument(id: string, term: string, stored?: Record<string, unknown>): number {
    if (!id.includes('/reference/')) return 1
    const { title = '', titles = [] } = stored ?? {}
    const isOfSymbol = Array.isArray(titles) && titles.length === 0
    const name = String(title).replace(/\W/g, '').toLowerCase()
    return isOfSymbol && name === term.toLowerCase() ? 0.5 : 0.05
  },
}

/** How words are read, on the pages and in a search. The browser gets this function as text, too. */
export const words = {
  /** Returns a word in lower case, without the `s` of a plural, or nothing for one that names no subject. */
  processTerm(word: string): string | null {
    const common =
      /^(a|an|and|another|are|as|at|be|by|can|do|does|for|from|how|i|in|is|it|its|many|much|my|no|not|of|on|or|per|the|to|what|when|which|with|your)$/
    const lower = word.toLowerCase()
    if (common.test(lower)) return null
    return lower.length > 3 ? lower.replace(/([^s])s$/, '$1') : lower
  },
}

/** What the title of a page does not say: the index has it beside the title. */
const subtitles: Readonly<Record<string, string>> = {
  'docs/sizing.md': 'payments per second',
}

/** Returns what `docs/tasks.md` says of each page, and of each section, as `<source>#<heading>`. */
export function taskWords(repository: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const file = 'docs/tasks.md'
  const rows = readFileSync(join(repository, file), 'utf8').matchAll(/^\| (.+?) \| (.+) \|$/gm)
  for (const [, task = '', links = ''] of rows) {
    for (const [, link = ''] of links.matchAll(/\]\(([^)]+)\)/g)) {
      const place = relative(repository, join(repository, dirname(file), link))
      found.set(place, `${found.get(place) ?? ''} ${task}`)
    }
  }
  return found
}

/** Adds to the sections of a page, for the index of the search, the tasks that lead there. */
export function withTasks(
  html: string,
  source: string,
  tasks: ReadonlyMap<string, string>,
): string {
  let title = subtitles[source]
  let page = tasks.get(source)
  return html.replace(
    /(<h\d[^>]*? id="([^"]*)"[^>]*>)([\s\S]*?)(<a [\s\S]*?<\/h\d>)/g,
    (...match) => {
      const [, open, id, text, end] = match as string[]
      const shown = title === undefined ? text : `${text?.trim()}, ${title} `
      const added = `<p>${tasks.get(`${source}#${id}`) ?? ''} ${page ?? ''}</p>`
      title = page = undefined
      return `${open}${shown}${end}${added}`
    },
  )
}
