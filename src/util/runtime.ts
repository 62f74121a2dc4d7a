interface MaybeNavigator {
  readonly navigator?: { readonly userAgent?: string }
}

/**
 * Whether this is Cloudflare Workers, which has some of Node's modules, but not DNS. It cancels a request that waits for
 * what another request resolves, except inside a Durable Object.
 */
export function isCloudflareWorkers(): boolean {
  return (globalThis as MaybeNavigator).navigator?.userAgent === 'Cloudflare-Workers'
}
