//! Network namespaces, which need root, `unshare` and `ip`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Set for the test binary inside of the namespace.
const INSIDE: &str = "HEADWATER_TEST_NAMESPACE";

/// Runs this test, such as `module::test`, again in a network namespace of its own, in which no interface is up. Returns
/// whether the caller is inside. Mounts inside are not seen outside.
pub fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let binary = std::env::current_exe().expect("a test binary");
    let outcome = Command::new("unshare")
        .args(["--net", "--mount", "--"])
        .arg(binary)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        // Long runs tell what they do.
        .stderr(Stdio::inherit())
        .output();
    let outcome = outcome.expect("this test needs unshare: apt-get install util-linux");
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(
        outcome.status.success() && text.contains("1 passed"),
        "in a network namespace, which needs root: {text}"
    );
    false
}

/// Runs `ip`.
pub fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status();
    let status = status.expect("this test needs ip: just tools (apt-get install iproute2)");
    assert!(status.success(), "ip {arguments:?}");
}

/// Runs a test on a runtime whose threads are all inside.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

/// Machines with a network namespace each. The caller's namespace is the router between them: machine `n` has the address
/// [`host(n)`](Self::host), and the caller [`ROUTER`].
#[derive(Debug)]
pub struct Machines {
    /// The ways that are cut: packets from one machine to another are lost without a word.
    cuts: Vec<(usize, usize)>,
    /// The process that delays packets, and its machine.
    slow: Option<(Child, usize)>,
}

/// The address of the caller's namespace, which all machines reach.
pub const ROUTER: &str = "10.77.0.1";

impl Machines {
    /// Creates the machines 1 to `n`. Call it once, inside of a namespace.
    pub fn new(n: usize) -> Self {
        // Where `ip netns` keeps its names; a mount of this namespace only.
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none", "/run"]).status();
        assert!(mounted.is_ok_and(|it| it.success()), "/run can be mounted");
        ip(&["link", "set", "lo", "up"]);
        ip(&["address", "add", &format!("{ROUTER}/32"), "dev", "lo"]);
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("packets can be forwarded");
        for at in 1..=n {
            let (name, link) = (namespace(at), format!("veth{at}"));
            ip(&["netns", "add", &name]);
            ip(&["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &name]);
            ip(&["address", "add", &format!("10.77.{at}.1/24"), "dev", &link]);
            ip(&["link", "set", &link, "up"]);
            ip(&["-n", &name, "link", "set", "lo", "up"]);
            ip(&["-n", &name, "address", "add", &format!("{}/24", Self::host(at)), "dev", "eth0"]);
            ip(&["-n", &name, "link", "set", "eth0", "up"]);
            ip(&["-n", &name, "route", "add", "default", "via", &format!("10.77.{at}.1")]);
        }
        Self { cuts: Vec::new(), slow: None }
    }

    /// Returns the address of a machine.
    pub fn host(at: usize) -> String {
        format!("10.77.{at}.2")
    }

    /// Returns the command that becomes a program on a machine.
    pub fn command(at: usize) -> Vec<String> {
        let ip = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"]
            .into_iter()
            .find(|it| std::fs::exists(it).is_ok_and(|it| it));
        [ip.expect("ip was used before"), "netns", "exec", &namespace(at)].map(str::to_owned).to_vec()
    }

    /// Loses all packets from one machine to another, and not those of the other direction.
    pub fn cut(&mut self, from: usize, to: usize) {
        if !self.cuts.contains(&(from, to)) {
            rule("add", from, to);
            self.cuts.push((from, to));
        }
    }

    /// Delays all packets between this machine and the others by 100 ms in each direction, and loses some of them. Packets of
    /// the router are not delayed.
    pub fn slow_down(&mut self, at: usize) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/slow_link.py");
        let child = Command::new("python3").args([script, SLOW, "100", "5"]).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("this test needs python3");
        let mut line = String::new();
        let output = child.stdout.take().expect("output is piped");
        BufReader::new(output).read_line(&mut line).expect("output can be read");
        assert_eq!(line.trim(), "ready");
        ip(&["route", "add", "default", "dev", SLOW, "table", SLOW_TABLE]);
        self.slow = Some((child, at));
        slow_rules("add", at);
    }

    /// Restores all ways.
    pub fn restore(&mut self) {
        if let Some((mut child, at)) = self.slow.take() {
            slow_rules("del", at);
            // The device and its route end with the process.
            child.kill().and_then(|()| child.wait()).expect("the process is ours");
        }
        for (from, to) in self.cuts.drain(..) {
            rule("del", from, to);
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.slow {
            // It may have ended.
            let _ = child.kill();
        }
    }
}

/// The device that delays packets, and the table that routes into it.
const SLOW: &str = "slow0";
const SLOW_TABLE: &str = "100";

/// Routes packets from and to a machine into the device. What comes out of it goes where it would have gone.
fn slow_rules(what: &str, at: usize) {
    let machine = format!("10.77.{at}.0/24");
    let machine = machine.as_str();
    for (preference, of, value, table) in [
        ("10", "iif", SLOW, "main"),
        ("11", "from", ROUTER, "main"),
        ("12", "to", machine, SLOW_TABLE),
        ("13", "from", machine, SLOW_TABLE),
    ] {
        ip(&["rule", what, "pref", preference, of, value, "lookup", table]);
    }
}

fn namespace(at: usize) -> String {
    format!("machine{at}")
}

fn rule(what: &str, from: usize, to: usize) {
    let [from, to] = [from, to].map(|it| format!("10.77.{it}.0/24"));
    ip(&["rule", what, "from", &from, "to", &to, "blackhole"]);
}
