//! With NATS servers: `just tools` installs them.

mod commit_log;
mod old_server;
mod one_server;
mod support;
mod three_servers;
