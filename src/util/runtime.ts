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
 * Whether the runtime is Cloudflare Workers, which has some of Node's modules, but not DNS. Outside a Durable Object,
 * Workers cancels a request that awaits a promise that another request resolves.
 */
export function isCloudflareWorkers(): boolean {
  return (globalThis as Globals).navigator?.userAgent === 'Cloudflare-Workers'
}
