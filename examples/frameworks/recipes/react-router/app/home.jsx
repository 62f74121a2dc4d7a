export default function Home() {
  return <h1>own page</h1>
}
