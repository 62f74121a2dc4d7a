import { once } from 'node:events'
import { createServer } from 'node:http'

/** No request has a larger body. Anybody can send one: it is read before the secret is compared. */
const bodyMax = 65_536

/** Serves a function on a port of this machine. Without a response, it breaks the connection. */
export async function serve(
  port: number,
  handle: (request: Request) => Promise<Response | undefined>,
): Promise<void> {
  const server = createServer(async (request, response) => {
    try {
      const body: Buffer[] = []
      let length = 0
      for await (const chunk of request) {
        length += chunk.length
        if (length > bodyMax) return void response.writeHead(413, { connection: 'close' }).end()
        body.push(chunk)
      }
      const { method = 'GET', url = '/', headers } = request
      const answer = await handle(
        new Request(new URL(url, `http://localhost:${port}`), {
          method,
          headers: { authorization: headers.authorization ?? '' },
          ...(body.length > 0 && { body: Buffer.concat(body) }),
        }),
      )
      if (answer === undefined) return void request.socket.destroy()
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      response.end(await answer.text())
    } catch (error) {
      console.error(error)
      response.writeHead(500).end()
    }
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
}
