/** The exports of all entries, for the build: one file, because a host loads one file faster than many. */

export * from './entry-adapter.js'
export * from './entry-attempts.js'
export * from './entry-core.js'
export * from './index.js'
