/** Stores with one fault each on top of a correct store: the conformance suite must find each fault. */

export * as commits from './broken-stores/commits.js'
export * as indexes from './broken-stores/indexes.js'
export { broken, type OneRecordStore } from './broken-stores/one-record.js'
export { plantedIn } from './broken-stores/planted.js'
export * as reads from './broken-stores/reads.js'
export * as sizes from './broken-stores/sizes.js'
export * as values from './broken-stores/values.js'
