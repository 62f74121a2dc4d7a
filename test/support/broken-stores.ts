/** Stores with one fault each, over a store that is right: what the conformance suite has to find. */

export * as commits from './broken-stores/commits.js'
export * as reads from './broken-stores/reads.js'
export * as values from './broken-stores/values.js'
