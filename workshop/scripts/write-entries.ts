import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { build } from 'esbuild'
import ts from 'typescript'
import * as adapter from '../../src/entry-adapter.js'
import * as attempts from '../../src/entry-attempts.js'
import * as core from '../../src/entry-core.js'
import * as index from '../../src/index.js'

/** Completes the packages after a build. One list of changes is for all packages: each version has all of them. */
for (const name of readdirSync('packages')) {
  copyFileSync('CHANGELOG.md', `packages/${name}/CHANGELOG.md`)
}
writePure('dist/library.js')
for (const [name, exported] of Object.entries({ index, core, adapter, attempts })) {
  const names = Object.keys(exported).join(',\n  ')
  writeFileSync(`dist/${name}.js`, `export {\n  ${names},\n} from './library.js'\n`)
}
const folders = [
  'dist',
  ...['testing', 'client', 'doctor', 'kysely', 'dynamodb', 'ilp', 'pages', 'rafiki', 'sandbox'].map(
    (name) => `packages/${name}/dist`,
  ),
]
for (const folder of folders) {
  const names = readdirSync(folder)
  const entries = names
    .filter((name) => name.endsWith('.js'))
    .map((name) => basename(name, '.js'))
    .filter((name) => names.includes(`${name}.d.cts`))
  for (const entry of entries) writeDeclarations(`${folder}/${entry}`)
  await writeCommonJs(folder, folder === 'dist' ? ['library', ...entries] : entries)
}

/**
 * Marks the values of a module's top level as free of side effects, which they are. Bundlers cannot know it of a call,
 * and would keep what only the value of an unused server needs.
 */
function writePure(path: string): void {
  const text = readFileSync(path, 'utf8')
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest)
  const values = file.statements
    .flatMap((each) => (ts.isVariableStatement(each) ? each.declarationList.declarations : []))
    .flatMap(({ name, initializer }) => (ts.isIdentifier(name) && initializer ? initializer : []))
    .filter((value) => !(ts.isLiteralExpression(value) || ts.isFunctionLike(value)))
  let written = ''
  let end = 0
  for (const value of values) {
    const start = value.getStart(file)
    const marked = `/* @__PURE__ */ (() => (${text.slice(start, value.end)}))()`
    written += text.slice(end, start) + marked
    end = value.end
  }
  writeFileSync(path, written + text.slice(end))
}

/**
 * The declarations for `require` are the complete ones, and those for `import` refer to them. The other way round,
 * TypeScript would reject the `require` of an ES module in some of its module settings.
 *
 * Kysely and fast-check have declarations of their own for each format, which are not assignable to each other. The
 * format of the file that imports them decides which ones count, so such a file is copied.
 */
function writeDeclarations(entry: string): void {
  const hasOwn = /from '(?:kysely|fast-check)'/.test(readFileSync(`${entry}.d.cts`, 'utf8'))
  if (hasOwn) copyFileSync(`${entry}.d.cts`, `${entry}.d.ts`)
  else writeFileSync(`${entry}.d.ts`, `export * from './${basename(entry)}.cjs'\n`)
  if (entry === 'dist/index') for (const format of ['cjs', 'js'] as const) leadToCore(entry, format)
}

/**
 * Lets hosts emit declarations of stored records, such as of what `getRecord` returns: the compiler names them by an
 * entry only if the declarations that the host imports lead to its file.
 */
function leadToCore(entry: string, format: 'cjs' | 'js'): void {
  const path = `${entry}.d.${format.replace('js', 'ts')}`
  writeFileSync(path, `import type {} from './core.${format}'\n${readFileSync(path, 'utf8')}`)
}

/**
 * Writes CommonJS for tools whose `require` does not load ES modules, such as Jest: with names and layout, for traces.
 * Node's `require` loads the same ES module as `import`, by the condition `module-sync`. Contains `@noble/ed25519`,
 * which is an ES module only.
 */
async function writeCommonJs(folder: string, entries: readonly string[]): Promise<void> {
  await build({
    entryPoints: entries.map((entry) => `${folder}/${entry}.js`),
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    minifySyntax: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    define: { 'import.meta.url': '__filename' },
    plugins: [
      {
        name: 'files of the same package',
        setup({ onResolve }) {
          onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
            kind === 'entry-point' || path === '@noble/ed25519' ? undefined : { external: true },
          )
          onResolve({ filter: /^\.\/[a-z]+\.js$/ }, ({ path }) => {
            const entry = basename(path, '.js')
            return entries.includes(entry) ? { path: `./${entry}.cjs`, external: true } : undefined
          })
        },
      },
    ],
  })
}
