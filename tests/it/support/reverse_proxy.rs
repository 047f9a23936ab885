//! Servers such as nginx in front of a gateway or a provider.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::until_async;

/// A running proxy; ended when it is dropped.
pub struct ReverseProxy {
    _child: Child,
    _folder: tempfile::TempDir,
    pub address: SocketAddr,
}

impl ReverseProxy {
    /// Starts nginx with these servers, one of which listens at this address.
    pub async fn nginx(servers: &str, address: SocketAddr) -> ReverseProxy {
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|it| format!("{it}_temp_path {it};\n"))
            .concat();
        let text = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log off;\n{temporary}{servers}}}\n"
        );
        let arguments = ["-p", ".", "-e", "stderr", "-c", "proxy.conf"];
        Self::start(Command::new("nginx").args(arguments), &text, address).await
    }

    /// Starts a proxy with this configuration in `proxy.conf`, in a folder of its own.
    pub async fn start(command: &mut Command, text: &str, address: SocketAddr) -> ReverseProxy {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("proxy.conf"), text).expect("the configuration is written");
        // Debian installs nginx where not every user looks, and `just tools` has Caddy in a folder of its own.
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/bin");
        let path = format!("{}:/usr/sbin:{}", std::env::var("PATH").unwrap_or_default(), tools.display());
        let child = command
            .env("PATH", path)
            // Caddy keeps its state there.
            .env("HOME", folder.path())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("this test needs a proxy ({error}): just tools"));
        until_async("the proxy", async || TcpStream::connect(address).await.is_ok()).await;
        ReverseProxy { _child: child, _folder: folder, address }
    }
}

/// Returns an address that is free now. Another process could take it before the proxy does; the test then fails.
pub fn unused_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}
