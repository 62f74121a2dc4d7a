import { availableParallelism, cpus, loadavg } from 'node:os'
import * as library from 'open-payments-server'
import { events } from './events.js'
import type { Library } from './fixtures.js'
import { behindHttp } from './http.js'
import { type Figure, meets, type Quietness, quietnessOf } from './measure.js'
import { onPostgres, onPostgresBehindHttp } from './postgres.js'
import { spending } from './spending.js'
import { operations, verification } from './verification.js'

/**
 * Measures everything in one run, as ratios between contestants that alternate, and prints a table and the
 * same as JSON. Absolute figures depend on the machine as much as on the library.
 */
async function main(): Promise<void> {
  // The build creates it beside this file: the library with the published verifier.
  const variant = './with-published.js'
  const withPublished = (await import(variant)) as Library
  const parts: [string, () => Promise<Figure[]>][] = [
    ['verification', () => verification(library)],
    ['operations', () => operations(library)],
    ['behind HTTP', () => behindHttp(library, withPublished)],
    ['PostgreSQL', () => onPostgres(library)],
    ['PostgreSQL behind HTTP', () => onPostgresBehindHttp(library)],
    ['events', () => events(library)],
    ['spending', () => spending(library)],
  ]
  const figures: Figure[] = []
  const before = loadOfACore()
  const only = process.argv[2]
  for (const [name, measure] of parts.filter(([part]) => !only || part === only)) {
    console.error(`measuring: ${name}`)
    figures.push(...(await measure()))
  }
  const quietness = quietnessOf({ before, after: loadOfACore() }, figures)
  printQuietness(quietness)
  print(figures)
  const processor = { cpu: cpus()[0]?.model, cores: availableParallelism() }
  const machine = { node: process.version, ...processor, ...quietness }
  console.log(JSON.stringify({ machine, figures }))
}

/** The average load of the last minute. */
function loadOfACore(): number {
  const [load = 0] = loadavg()
  return load / availableParallelism()
}

function printQuietness({ loadBefore, loadAfter, floorSpread, isQuiet }: Quietness): void {
  const loads = `load of a core ${loadBefore.toFixed(2)} before, ${loadAfter.toFixed(2)} after`
  console.log(
    `${loads}; the rounds of a floor server differ by ${(floorSpread * 100).toFixed(0)} %`,
  )
  console.log(isQuiet ? 'The machine was quiet.' : 'THE MACHINE WAS BUSY: ALL FIGURES ARE UNSURE.')
}

function print(figures: readonly Figure[]): void {
  const width = Math.max(...figures.map(({ name }) => name.length))
  for (const figure of figures) {
    const { name, value, unit, target } = figure
    const met = meets(figure)
    const bound =
      target === undefined
        ? ''
        : 'least' in target
          ? `at least ${target.least}`
          : `at most ${target.most}`
    const verdict = met === undefined ? '' : met ? 'met' : 'MISSED'
    const digits = value >= 1000 || unit === 'calls' ? 0 : value >= 10 ? 1 : 3
    console.log(
      `${name.padEnd(width)}  ${value.toFixed(digits).padStart(8)} ${unit.padEnd(10)}  ${bound.padEnd(14)} ${verdict}`,
    )
  }
}

await main()
