/**
 * How the search of the site ranks its results: guides first, then the API reference, except the page of a symbol for
 * its name. The browser gets this function as text, so it uses nothing outside of it.
 */
export const preferGuides = {
  /** Returns the factor of a result. The term is one of the page, which the searched one can begin. */
  boostDocument(id: string, term: string, stored?: Record<string, unknown>): number {
    if (!id.includes('/reference/')) return 1
    const { title = '', titles = [] } = stored ?? {}
    const isOfSymbol = Array.isArray(titles) && titles.length === 0
    const name = String(title).replace(/\W/g, '').toLowerCase()
    return isOfSymbol && name === term.toLowerCase() ? 0.5 : 0.05
  },
}
