using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "wallet", worker = .wallet)],
  sockets = [(name = "http", address = "localhost:3000", http = (), service = "wallet")],
);

const wallet :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "dist/worker.js")],
  bindings = [
    (name = "ORIGIN", fromEnvironment = "ORIGIN"),
    (name = "WALLET", durableObjectNamespace = "Wallet"),
  ],
  durableObjectNamespaces = [(className = "Wallet", uniqueKey = "wallet")],
  durableObjectStorage = (inMemory = void),
  compatibilityDate = "2026-01-01",
  compatibilityFlags = ["nodejs_compat"],
);
