const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether the host of a URL is one of the names of this machine. */
export function isLoopback({ hostname }: URL): boolean {
  return loopbackHosts.has(hostname)
}
