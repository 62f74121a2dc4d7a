interface MaybeNavigator {
  readonly navigator?: { readonly userAgent?: string }
}

/**
 * Whether the runtime is Cloudflare Workers, which has some of Node's modules, but not DNS. Outside a Durable Object,
 * Workers cancels a request that awaits a promise that another request resolves.
 */
export function isCloudflareWorkers(): boolean {
  return (globalThis as MaybeNavigator).navigator?.userAgent === 'Cloudflare-Workers'
}
