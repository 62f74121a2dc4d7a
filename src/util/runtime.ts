import type * as NodeCrypto from 'node:crypto'

/** Globals that only some runtimes have. */
interface Globals {
  readonly process?: { readonly getBuiltinModule?: (id: string) => unknown }
  readonly navigator?: { readonly userAgent?: string }
}

/**
 * Returns a built-in module of Node, or `undefined` on other runtimes. Uses no import, so that the library can be
 * bundled for those runtimes.
 */
export function nodeModule<Module>(id: `node:${string}`): Module | undefined {
  const builtin = (globalThis as Globals).process?.getBuiltinModule?.(id)
  return builtin as Module | undefined
}

/**
 * Returns `node:crypto`, or `undefined` on other runtimes. Loads it at the first call, because that takes Node as long
 * as a third of the import of the whole library.
 */
export const nodeCrypto = onFirstUse<typeof NodeCrypto>('node:crypto')

function onFirstUse<Module>(id: `node:${string}`): () => Module | undefined {
  const builtin = (globalThis as Globals).process?.getBuiltinModule
  let loaded: { readonly module: Module | undefined } | undefined
  return () => {
    loaded ??= { module: builtin?.(id) as Module | undefined }
    return loaded.module
  }
}

/**
 * Whether the runtime is Cloudflare Workers, which has some of Node's modules, but not DNS. Outside a Durable Object,
 * Workers cancels a request that awaits a promise that another request resolves.
 */
export function isCloudflareWorkers(): boolean {
  return (globalThis as Globals).navigator?.userAgent === 'Cloudflare-Workers'
}
