import { readFileSync } from 'node:fs'

const groups = JSON.parse(readFileSync(new URL('groups.json', import.meta.url), 'utf8'))

/** The files that are mutated together, and their tests. */
export const name = process.env.MUTATION_GROUP ?? 'core'
export const group = groups[name]

/** Where the tests are built, inside Stryker's copy of the project. */
export const testsFolder = '.mutation/tests'
