//! What the programs of stream profiles can do, and what they cannot: real programs behind a real gateway.
//!
//! Where the kernel has no Landlock, the tests assert what is left: everything except the restriction of files.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::Config;

use crate::programs::{recorded, run_first};
use crate::support::binary::Binary;
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::{eventually, tools};

/// Time for a script to write its report.
const PATIENCE: Duration = Duration::from_secs(55);

/// Folders of a machine, none of them below the temporary folder, which is writable.
struct Machine {
    root: tempfile::TempDir,
    /// Keeps the first stream of the channel available.
    provider: Provider,
}

impl Machine {
    fn new() -> Machine {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for folder in ["data", "data/scripts", "out", "other"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        std::fs::write(root.path().join("data/scripts/helper"), "#!/bin/sh\necho help\n").unwrap();
        std::fs::write(root.path().join("other/file"), "public\n").unwrap();
        recorded("program", &root.path().join("other"));
        let provider = Provider::start();
        provider.path("/first.ts").plays(Picture::new("first"));
        Machine { root, provider }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Starts a gateway with its data in `data` and a program that may write to `out`.
    async fn gateway(&self, change: impl FnOnce(&mut Config)) -> TestGateway {
        let list = self.provider.playlist(&[("news", "News", "/first.ts")]);
        let data = self.path("data");
        let setup = Setup::new().list(&list).folder(&data).config(|it| {
            it.data_dir = data.clone();
            it.programs.writable_paths = vec![self.path("out")];
            // The scripts try many things before they play.
            (it.engine.first_packet_timeout, it.engine.start_timeout) = (PATIENCE, PATIENCE);
        });
        setup.config(change).start().await
    }

    /// Runs a script as the program of the channel, until it has written its report and plays. Each of its lines is a
    /// name and a command; returns whether each succeeded, and the last line that it printed.
    async fn report(
        &self,
        gateway: &TestGateway,
        lines: &[(&str, &str)],
    ) -> BTreeMap<String, (bool, String)> {
        let mut script = format!("R={}\ncd /\n", self.root.path().display());
        for (name, command) in lines {
            script += &format!(
                "out=$( ({command}) 2>&1 ); echo \"{name} $? $(echo \"$out\" | tail -n 1)\" >>$R/out/new\n"
            );
        }
        script += "mv $R/out/new $R/out/report; echo $$ >$R/out/pid; cat $R/other/ts; exec sleep 1000\n";
        std::fs::write(self.path("other/script"), script).unwrap();
        let parameters = format!("{} {{streamUrl}}", self.path("other/script").display());
        run_first(gateway, "News", "/bin/sh", parameters).await;
        let player = gateway.watch("News").await;
        player.sees("program").await;
        let report = std::fs::read_to_string(self.path("out/report")).unwrap();
        let pid = std::fs::read_to_string(self.path("out/pid")).unwrap();
        let process = |name: &str| PathBuf::from(format!("/proc/{}/{name}", pid.trim()));
        eventually("the script to end", || std::fs::read(process("cmdline")).unwrap().starts_with(b"sleep"))
            .await;
        // Those of the shell that started the tests may be left in all of them.
        let open = |folder: &Path, name: &OsStr| std::fs::read_link(folder.join("fd").join(name)).ok();
        let is_new = |it: &OsString| open(Path::new("/proc/self"), it) != open(&process(""), it);
        let is_standard = |it: &OsString| ["0", "1", "2"].contains(&it.to_str().unwrap());
        let inherits_none = || {
            let files = std::fs::read_dir(process("fd")).unwrap().map(|it| it.unwrap().file_name());
            files.filter(|it| is_new(it)).all(|it| is_standard(&it))
        };
        // A program that has just begun still reads its libraries.
        eventually("the program to have no file of the gateway", inherits_none).await;
        drop(player);
        gateway.until_idle().await;
        let parse = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (name, code) = (words.next()?.to_owned(), words.next()?);
            Some((name, (code == "0", words.next().unwrap_or_default().to_owned())))
        };
        report.lines().filter_map(parse).collect()
    }
}

/// Returns the lines that succeeded.
fn succeeded(report: &BTreeMap<String, (bool, String)>) -> Vec<&str> {
    report.iter().filter(|it| it.1.0).map(|it| it.0.as_str()).collect()
}

/// Attempts on the data folder, on other folders and on the gateway.
const FORBIDDEN: [(&str, &str); 17] = [
    ("change-file", "echo x >>$R/other/file"),
    ("create-in-data", "echo x >$R/data/new"),
    ("create-in-other", "echo x >$R/other/new"),
    ("delete-key", "rm $R/data/key"),
    ("link-key", "ln $R/data/key $R/out/hard && cat $R/out/hard"),
    ("list-data", "ls $R/data"),
    ("list-store", "ls $R/data/store"),
    ("move-data", "mv $R/data $R/out/data"),
    ("overwrite-key", "echo x >$R/data/key"),
    ("read-environment-of-gateway", "tr '\\0' '\\n' </proc/$PPID/environ"),
    ("read-key", "cat $R/data/key"),
    ("read-key-by-link", "ln -sf $R/data/key $R/out/soft && cat $R/out/soft"),
    ("read-key-through-gateway", "cat /proc/$PPID/root$R/data/key"),
    ("read-key-through-itself", "cat /proc/self/root$R/data/key"),
    ("read-memory-of-gateway", "head -c 1 /proc/$PPID/mem"),
    ("read-store", "cat $R/data/store/*"),
    ("signal-gateway", "kill -0 $PPID"),
];

/// Actions that custom programs need.
const ALLOWED: [(&str, &str); 11] = [
    (
        "create-in-out",
        "mkdir $R/out/a && echo x >$R/out/a/b && mv $R/out/a/b $R/out/c && rm -r $R/out/a $R/out/c",
    ),
    ("error-output", "echo x >/dev/stderr"),
    ("fifo-in-temporary", "it=$(mktemp -u) && mkfifo $it && rm $it"),
    ("list-certificates", "ls /etc/ssl/certs"),
    ("null", "echo x >/dev/null && head -c 1 /dev/null /dev/zero /dev/urandom >/dev/null"),
    ("output", "echo x >/dev/stdout"),
    ("read-file", "cat $R/other/file"),
    ("run-programs", "ls -l $R/other | grep -q file"),
    ("signal-own-children", "sleep 1000 & kill -KILL $!"),
    ("temporary-file", "it=$(mktemp) && echo x >$it && rm $it"),
    ("whole-path", "cd $R/other && cat ../other/file"),
];

/// Lines that depend on where the folder of temporary files is.
const IN_TEMPORARY: [&str; 4] = ["change-file", "create-in-other", "fifo-in-temporary", "temporary-file"];

// Holds T-prog.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_reaches_neither_the_data_folder_nor_the_gateway_and_writes_only_where_it_may() {
    let machine = Machine::new();
    let gateway = machine.gateway(|_| {}).await;
    let key = std::fs::read(machine.path("data/key")).unwrap();
    if !media::can_restrict_files() {
        // The same program reads the key: this is what the warning at the start says.
        let report = machine.report(&gateway, &[("read-key", "cat $R/data/key")]).await;
        assert_eq!(succeeded(&report), ["read-key"]);
        return;
    }
    let mut lines = [&FORBIDDEN[..], &ALLOWED].concat();
    if machine.root.path().starts_with(std::env::temp_dir()) {
        // The data folder is below the folder of temporary files, so its neighbours are temporary files, and that folder
        // cannot be allowed as a whole.
        lines.retain(|it| !IN_TEMPORARY.contains(&it.0));
    }
    let report = machine.report(&gateway, &lines).await;
    let is_tried = |it: &&str| lines.iter().any(|line| line.0 == *it);
    let mut allowed: Vec<_> = ALLOWED.iter().map(|it| it.0).filter(is_tried).collect();
    if !scopes_signals() {
        allowed.push("signal-gateway");
    }
    assert_eq!(succeeded(&report), allowed, "{report:#?}");
    assert_eq!(report.len(), lines.len());
    assert_eq!(std::fs::read(machine.path("data/key")).unwrap(), key);
    assert_eq!(std::fs::read_to_string(machine.path("other/file")).unwrap(), "public\n");
}

/// Returns whether the kernel can forbid signals to other processes (Linux 6.12).
fn scopes_signals() -> bool {
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = version.split(['.', '-']).filter_map(|it| it.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_in_the_data_folder_run_if_the_operator_lists_them() {
    let machine = Machine::new();
    let lines = [("run", "sh $R/data/scripts/helper"), ("key", "test ! -r $R/data/key || cat $R/data/key")];
    if !media::can_restrict_files() {
        return assert!(
            succeeded(&machine.report(&machine.gateway(|_| {}).await, &lines).await).contains(&"run")
        );
    }
    let gateway = machine.gateway(|_| {}).await;
    assert_eq!(succeeded(&machine.report(&gateway, &lines).await), Vec::<&str>::new());
    drop(gateway);
    let machine = Machine::new();
    let gateway = machine.gateway(|it| it.programs.readable_paths = vec![it.data_dir.join("scripts")]).await;
    let report = machine.report(&gateway, &lines).await;
    assert_eq!(succeeded(&report), ["run"], "{report:?}");
    assert_eq!(report["run"].1, "help");
}

// Holds T-prog.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_gains_no_privileges_and_its_resources_are_limited() {
    let machine = Machine::new();
    let gateway = machine
        .gateway(|it| {
            it.programs.memory_bytes_max = 200 << 20;
            it.programs.file_bytes_max = 1 << 20;
            it.programs.open_files_max = 100;
            it.programs.processes_max = 12_345;
        })
        .await;
    let lines = [
        ("capabilities", "grep -E 'Cap(Eff|Prm|Inh|Amb)' /proc/self/status | cut -f 2 | sort | tail -n 1"),
        ("core", "ulimit -c"),
        ("files", "ulimit -n; ulimit -Hn"),
        ("large-file", "head -c 2000000 /dev/zero >$R/out/large"),
        ("memory", "head -c 1000000000 /dev/zero | tail"),
        ("new-privileges", "grep NoNewPrivs /proc/self/status"),
        ("out-of-memory", "cat /proc/self/oom_score_adj"),
        ("processes", "grep 'Max processes' /proc/self/limits | tr -s ' '"),
        ("raise-limit", "ulimit -n 200"),
        ("stdin", "readlink /proc/$$/fd/0"),
        ("user", "setpriv --reuid 65534 true || su nobody -s /bin/true"),
    ];
    let report = machine.report(&gateway, &lines).await;
    let last = |name: &str| report[name].1.as_str();
    assert_eq!(last("new-privileges"), "NoNewPrivs:\t1", "{report:#?}");
    // Bit 1 is CAP_DAC_OVERRIDE, which only the program of a gateway that runs as root has.
    let capabilities = u64::from_str_radix(last("capabilities"), 16).unwrap();
    assert_eq!(capabilities & !0b10, 0, "{capabilities:x}");
    assert_eq!((last("core"), last("files"), last("out-of-memory")), ("0", "100", "500"));
    assert_eq!(last("processes"), "Max processes 12345 12345 processes ");
    assert_eq!(last("stdin"), "/dev/null");
    for name in ["large-file", "memory", "raise-limit", "user"] {
        assert!(!report[name].0, "{name}: {report:#?}");
    }
    assert_eq!(machine.path("out/large").metadata().unwrap().len(), 1 << 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_the_operator_does_not_allow_is_not_started() {
    let machine = Machine::new();
    let gateway = machine.gateway(|it| it.programs.allowed = vec!["ffmpeg".to_owned()]).await;
    let parameters = format!("-c 'touch {}' {{streamUrl}}", machine.path("out/ran").display());
    run_first(&gateway, "News", "/bin/sh", parameters).await;
    let player = Player::ask(gateway.address, gateway.get("News")).await;
    assert_eq!(player.status().await, 503);
    assert!(!machine.path("out/ran").exists());
    let events = format!("{:?}", gateway.events());
    assert!(events.contains("sh is not in the list of allowed programs"), "{events}");
}

/// A kernel without Landlock, or a container whose filter knows it not: both answer ENOSYS. Installs such a filter with
/// the C library of Python and becomes the gateway.
const WITHOUT_LANDLOCK: &str = r#"
import ctypes, os, platform, struct, sys
LOAD, EQUAL, RETURN, ENOSYS = 0x20, 0x15, 0x06, 38
code = [(LOAD, 0, 0, 0)]
code += [(EQUAL, 2 - n, 0 if n < 2 else 1, 444 + n) for n in range(3)]
code += [(RETURN, 0, 0, 0x00050000 | ENOSYS), (RETURN, 0, 0, 0x7FFF0000)]
program = b"".join(struct.pack("HBBI", *it) for it in code)
buffer = ctypes.create_string_buffer(program)
filter = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, filter, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"#;

// Holds T-prog.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_landlock_programs_still_run_with_limits_and_without_privileges() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "secret\n").unwrap();
    let script = format!("cat {} && grep NoNewPrivs /proc/self/status && ulimit -n", key.display());
    let launcher =
        ["launch-program", "--hide", key.to_str().unwrap(), "--files", "77", "--", "/bin/sh", "-c", &script];
    let command = [&["-c", WITHOUT_LANDLOCK, env!("CARGO_BIN_EXE_headwater")][..], &launcher].concat();
    let output = tools::run("python3", &command).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "secret\nNoNewPrivs:\t1\n77\n", "{errors}");

    // The gateway says at its start what it cannot do, and metrics say so as well.
    let warning = "this kernel cannot restrict the files of programs";
    let data = folder.path().join("data").display().to_string();
    let serve = ["serve", "--data-dir", &data];
    let without = Binary::start_with(&["/usr/bin/python3", "-c", WITHOUT_LANDLOCK], &serve);
    let metrics = fetch(without.address().await, Request::get("/metrics")).await.text();
    assert!(without.output().contains(warning), "{}", without.output());
    assert!(metrics.contains("\nheadwater_programs_restricted 0\n"), "{metrics}");
    drop(without);
    let with = TestGateway::with_list("#EXTM3U\n").await;
    let metrics = fetch(with.address, Request::get("/metrics")).await.text();
    let expected = format!("\nheadwater_programs_restricted {}\n", u8::from(media::can_restrict_files()));
    assert!(metrics.contains(&expected), "{metrics}");
}

/// These need ffmpeg.
mod slow {
    use super::*;
    use crate::support::upstream::MockResponse;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ffmpeg_reads_files_and_addresses_and_writes_into_the_folder_it_may() {
        let machine = Machine::new();
        let gateway = machine.gateway(|_| {}).await;
        let clip = machine.path("other/clip.ts");
        let picture = "-v error -f lavfi -i testsrc=size=320x180:rate=25 -t 2 -c:v libx264 -f mpegts";
        let make: Vec<_> = picture.split(' ').chain([clip.to_str().unwrap()]).collect();
        tools::text_of("ffmpeg", &make).await;
        let response = MockResponse::recording(&std::fs::read(&clip).unwrap());
        machine.provider.path("/clip.ts").answers(response);

        let line = |input: &str, output: &str| {
            format!("ffmpeg -nostdin -v error -y -i {input} -c copy -f mpegts {output}")
        };
        let address = line(&machine.provider.url("/clip.ts"), "$R/out/address.ts");
        let file = line("$R/other/clip.ts", "$R/out/file.ts");
        let into_data = line("$R/other/clip.ts", "$R/data/new.ts");
        let pipe = line("file:$R/other/clip.ts", "pipe:1 | wc -c");
        let transcoded = file.replace("-c copy", "-c:v libx264").replace("file.ts", "transcoded.ts");
        let lines = [
            ("address", &address),
            ("file", &file),
            ("into-data", &into_data),
            ("pipe", &pipe),
            ("transcoded", &transcoded),
        ];
        let report = machine.report(&gateway, &lines.map(|(name, line)| (name, line.as_str()))).await;
        let can = media::can_restrict_files();
        let expected: Vec<_> = lines.iter().map(|it| it.0).filter(|it| !can || *it != "into-data").collect();
        assert_eq!(succeeded(&report), expected, "{report:#?}");
        assert!(report["pipe"].1.parse::<u64>().unwrap() > 10_000, "{report:?}");
        for name in ["address", "file", "transcoded"] {
            assert!(machine.path(&format!("out/{name}.ts")).metadata().unwrap().len() > 10_000, "{name}");
        }
    }
}
