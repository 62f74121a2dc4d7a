export const action = async ({ request }) => new Response(await request.text())
