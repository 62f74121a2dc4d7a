import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'

/**
 * Completes the entries of the packages after a build: `require` of an entry loads the same ES module as `import`, so
 * the packages contain their code once.
 *
 * The declarations for `require` are the complete ones, and those for `import` refer to them. The other way round,
 * TypeScript would reject the `require` of an ES module in some of its module settings.
 *
 * Kysely and fast-check have declarations of their own for each format, which are not assignable to each other. The
 * format of the file that imports them decides which ones count, so such a file is copied.
 */
for (const folder of ['dist', 'packages/testing/dist']) {
  const entries = readdirSync(folder)
    .filter((name) => name.endsWith('.js'))
    .map((name) => `${folder}/${basename(name, '.js')}`)
  const declared = readdirSync(folder).map((name) => `${folder}/${name}`)
  for (const entry of entries.filter((each) => declared.includes(`${each}.d.cts`))) {
    const name = basename(entry)
    const hasOwn = /from '(?:kysely|fast-check)'/.test(readFileSync(`${entry}.d.cts`, 'utf8'))
    if (hasOwn) copyFileSync(`${entry}.d.cts`, `${entry}.d.ts`)
    else writeFileSync(`${entry}.d.ts`, `export * from './${name}.cjs'\n`)
    writeFileSync(`${entry}.cjs`, `module.exports = require('./${name}.js')\n`)
  }
}
