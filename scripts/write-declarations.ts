import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'

/**
 * Writes the declarations of the ES modules after a build. Both formats have the same ones, so those of the ES modules
 * refer to those of CommonJS. The other way round, TypeScript would reject the `require` of an ES module.
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
    const hasOwn = /from '(?:kysely|fast-check)'/.test(readFileSync(`${entry}.d.cts`, 'utf8'))
    if (hasOwn) copyFileSync(`${entry}.d.cts`, `${entry}.d.ts`)
    else writeFileSync(`${entry}.d.ts`, `export * from './${basename(entry)}.cjs'\n`)
  }
}
