/**
 * What the programs of this repository share. A build of a program contains what it uses of it.
 *
 * @module open-payments-programs
 */

export * from './answer.js'
export * from './arguments.js'
export * from './client-fetch.js'
export * from './exchange.js'
export * from './free-port.js'
export * from './network.js'
export * from './node-version.js'
export * from './private-key.js'
export * from './program.js'
export * from './question.js'
export * from './text.js'
export * from './wallet.js'
