import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Repairs links within the API reference. TypeDoc numbers the anchor of `GrantClient`, because it has given
 * `grantclient` to the member `client` of `Grant`; the page has the member's own name in that heading.
 */

const root = 'reference'
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
for (const file of files.filter((name) => name.endsWith('.md'))) {
  const path = join(root, file)
  const text = readFileSync(path, 'utf8')
  const repaired = text.replace(
    /\[(`?)(\w+)\1\]\(([^)#]*)#([a-z]+)-1\)/g,
    (link, mark: string, name: string, page: string, slug: string) =>
      name.toLowerCase() === slug ? `[${mark}${name}${mark}](${page}#${slug})` : link,
  )
  if (repaired !== text) writeFileSync(path, repaired)
}
