// What the example uses of the types that `wrangler types` writes for your Worker.
declare module 'cloudflare:workers' {
  export abstract class DurableObject<Env> {
    protected readonly env: Env
    fetch?(request: Request): Promise<Response>
  }
}

interface Env {
  readonly ORIGIN: string
  readonly WALLET: {
    getByName(name: string): {
      fetch(request: Request): Promise<Response>
      sweep(): Promise<void>
    }
  }
}
