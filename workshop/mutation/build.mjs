import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { build } from 'esbuild'
import { group, testsFolder } from './group.mjs'

// Bundles the tests of a group for Mocha, in Stryker's copy of the project, whose sources contain all mutants.

/**
 * The run of a mutant ends at the first test that fails, so files with more properties, which take longer, are last.
 */
function share(file) {
  const text = readFileSync(file, 'utf8')
  return (text.split('fc.').length - 1) / text.length
}

function testsIn(path) {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { recursive: true })
    .map((name) => join(path, name))
    .filter((name) => name.endsWith('.test.ts') && !group.without?.includes(name))
}

const tests = group.tests.flatMap(testsIn).toSorted((one, other) => share(one) - share(other))

/** Loads a module again for each `import()` of a test, as test/support/portable.ts needs it. */
let copies = 0
const copied = {
  name: 'copied',
  setup({ onResolve, onLoad }) {
    onLoad({ filter: /\.test\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      const contents = text.replace(/import\('(\.[^']+)'\)/g, (_, module) => {
        return `import('${module}?copy=${++copies}')`
      })
      return { contents, loader: 'ts', resolveDir: dirname(path) }
    })
    onResolve({ filter: /^\./ }, ({ path, resolveDir, pluginData }) => {
      const [module, copy = pluginData] = path.split('?copy=')
      if (copy === undefined) return undefined
      const file = resolve(resolveDir, module.replace(/\.js$/, '.ts'))
      return { path: file, suffix: `?copy=${copy}`, pluginData: copy }
    })
    onLoad({ filter: /\.ts$/ }, ({ path, suffix, pluginData }) => {
      if (suffix === '') return undefined
      // Modules of equal content would get the same file.
      const contents = `${readFileSync(path, 'utf8')}\nglobalThis.copyOfModule = ${pluginData}\n`
      return { contents, loader: 'ts', resolveDir: dirname(path), pluginData }
    })
  },
}

/** A module of a bundle is in another folder than the file that it reads. */
const reports = {
  name: 'reports',
  setup({ onLoad }) {
    onLoad({ filter: /\/reports\/text\.ts$/ }, () => {
      const text = readFileSync('adapters/postgres/reports/0001_reports.sql', 'utf8')
      return { contents: `export const reportsText = () => ${JSON.stringify(text)}` }
    })
  },
}

await build({
  entryPoints: Object.fromEntries(
    tests.map((test, i) => [`${String(i).padStart(3, '0')}-${test.replaceAll('/', '-')}`, test]),
  ),
  plugins: [
    reports,
    copied,
    {
      name: 'vitest',
      setup({ onResolve }) {
        onResolve({ filter: /^vitest$/ }, ({ importer }) =>
          importer.endsWith('workshop/mutation/vitest.ts')
            ? { path: 'vitest', external: true }
            : { path: resolve('workshop/mutation/vitest.ts') },
        )
      },
    },
  ],
  outdir: testsFolder,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  // Node.js 20 has no `await using`.
  target: 'node20',
  packages: 'external',
  sourcemap: 'inline',
  logLevel: 'warning',
})
