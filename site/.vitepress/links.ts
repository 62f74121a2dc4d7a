import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { Page } from './pages.ts'

const files = 'https://github.com/open-payments-server/open-payments-server/blob/main'

/**
 * Resolves a link of a document, which is relative to the file as on GitHub: to the page of the site that shows the
 * file, or else to the file on GitHub.
 *
 * @param source The path of the document in the repository.
 * @throws `Error` if the link leads to no file.
 */
export function resolveLink(
  repository: string,
  pages: readonly Page[],
  source: string,
  link: string,
): string {
  if (/^([a-z]+:|#|\/)/.test(link)) return link
  const [path = '', hash] = link.split('#')
  const file = relative(repository, join(repository, dirname(source), path))
  if (!existsSync(join(repository, file))) throw new Error(`${source} links to no file: ${link}`)
  const page = pages.find((each) => each.source === file)
  const target = page === undefined ? `${files}/${file}` : `/${page.path}`
  return hash === undefined ? target : `${target}#${hash}`
}
