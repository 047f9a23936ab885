//! Tests with badly behaved programs, written as shell scripts. Real processes and real time: every wait is
//! for an event or for a state that is visible in `/proc`.

use std::fs;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::Handle;

use super::*;
use crate::source::request::PROGRAM_INPUT_MAX;
use crate::source::{OpenRequest, ProgramInput, Source, SourceSettings, Upstream, open};
use crate::testing::{MemoryDial, PermitCount, TsSource, group, labels_in, until};

/// A folder with a stream, and an upstream to run scripts that write the stream.
struct Setup {
    folder: TempDir,
    upstream: Upstream,
    permits: PermitCount,
    /// The processes of the group that were left whenever a permit was returned.
    left_at_return: Arc<Mutex<Vec<String>>>,
}

/// An address that must not appear in any output.
const ADDRESS: &str = "http://anna:pa55word@tv/live/1.ts";

impl Setup {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bytes = TsSource::new("program").bytes(Duration::ZERO, Duration::from_secs(2));
        fs::write(folder.path().join("ts"), bytes).unwrap();
        let closer = Closer::new(Handle::current());
        let settings =
            SourceSettings { program_start_timeout: Duration::from_secs(60), ..SourceSettings::default() };
        let upstream =
            Upstream { dial: Arc::new(MemoryDial::new()), closer, launcher: Launcher::default(), settings };
        Self { folder, upstream, permits: PermitCount::default(), left_at_return: Arc::default() }
    }

    /// Runs a script in the folder. The script finds the stream as `ts`; a first line is added that stores
    /// its process id.
    fn open(&self, script: &str) -> impl Future<Output = Result<Source, UpstreamError>> + use<> {
        let folder = self.folder.path().display().to_string();
        let script = format!("cd {folder}; echo $$ >pid.new; mv pid.new pid; {script}");
        self.run(&["/bin/sh", "-c", &script])
    }

    fn run(&self, command: &[&str]) -> impl Future<Output = Result<Source, UpstreamError>> + use<> {
        let (left, pid) = (self.left_at_return.clone(), self.folder.path().join("pid"));
        let permit = self.permits.permit(move || {
            let pid = fs::read_to_string(&pid).unwrap_or_default();
            left.lock().extend(group(pid.trim()));
        });
        let command = Some(command.iter().map(|it| (*it).to_owned()).collect());
        let request = OpenRequest { url: ADDRESS.into(), command, ..OpenRequest::default() };
        open(request, permit, self.upstream.clone())
    }

    /// Returns the group of the script that runs or ran last.
    fn pid(&self) -> String {
        fs::read_to_string(self.folder.path().join("pid")).unwrap().trim().to_owned()
    }

    /// Asserts that all permits are returned, and that no process, not even a zombie, was left when each was.
    async fn is_clean(&self) {
        self.upstream.closer.idle().await;
        assert_eq!((self.permits.n_out(), self.upstream.closer.n_sockets()), (0, 0));
        assert_eq!(*self.left_at_return.lock(), Vec::<String>::new(), "a permit was returned too early");
    }

    /// Asserts the same for a program that may still be starting in another thread, which cannot be awaited.
    async fn has_given_up(&self) {
        while self.permits.n_out() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.is_clean().await;
    }
}

/// Reads to the end and returns the bytes and the cause of the end.
async fn read_all(source: &mut Source) -> (Vec<u8>, Cause) {
    let mut bytes = Vec::new();
    loop {
        match source.read().await {
            Ok(it) => bytes.extend_from_slice(&it),
            Err(error) => return (bytes, error.cause().clone()),
        }
    }
}

#[tokio::test]
async fn the_output_of_a_program_is_the_stream_and_its_exit_is_the_cause() {
    for (ending, cause) in [
        ("exit 0", "with status 0"),
        ("echo 'a\nlast: http://x/pa55word anna' >&2; exit 3", "with status 3: last: (address) …"),
        ("kill -KILL $$", "by signal 9"),
        ("exec >&-; exec sleep 1000", "its output"),
        // Another process holds one of the pipes or both open.
        ("sleep 1000 >&- & exit 4", "with status 4"),
        ("sleep 1000 & echo bye >&2; kill -KILL $$", "by signal 9: bye"),
    ] {
        let setup = Setup::new();
        let mut source = setup.open(&format!("cat ts; {ending}")).await.unwrap();
        assert_eq!(source.info().place, "sh");
        let (bytes, reported) = read_all(&mut source).await;
        assert_eq!(bytes, fs::read(setup.folder.path().join("ts")).unwrap(), "{ending}");
        assert_eq!(reported, Cause::Exited(cause.to_owned()), "{ending}");
        assert_eq!(setup.permits.n_out(), 1, "{ending}");
        drop(source);
        setup.is_clean().await;
    }
}

#[tokio::test]
async fn a_program_reads_its_input_and_the_end_of_it() {
    let setup = Setup::new();
    let permit = setup.permits.permit(|| {});
    let folder = setup.folder.path().display().to_string();
    let script = format!("cd {folder}; cat >input; cat ts; exit 0");
    let request = OpenRequest {
        url: ADDRESS.into(),
        command: Some(["/bin/sh", "-c", &script].map(str::to_owned).into()),
        command_input: Some(ProgramInput("a key\n".into())),
        ..OpenRequest::default()
    };
    assert!(!format!("{request:?} {:?}", request.command_input).contains("a key"));
    let mut source = open(request, permit, setup.upstream.clone()).await.unwrap();
    read_all(&mut source).await;
    assert_eq!(fs::read(setup.folder.path().join("input")).unwrap(), b"a key\n");
    drop(source);
    setup.is_clean().await;
    let long = OpenRequest {
        url: ADDRESS.into(),
        command: Some(vec!["/bin/cat".to_owned()]),
        command_input: Some(ProgramInput("x".repeat(PROGRAM_INPUT_MAX + 1).into())),
        ..OpenRequest::default()
    };
    assert!(open(long, setup.permits.permit(|| {}), setup.upstream.clone()).await.is_err());
}

// Holds T-life.6 (media's part).
#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed_with_all_its_children() {
    for (script, n, state) in [
        ("cat ts; exec sleep 1000", 1, "S"),
        ("trap '' TERM; cat ts; while :; do sleep 1000; done", 2, "S"),
        ("cat ts; kill -STOP $$", 1, "T"),
        ("trap '' TERM; cat ts; kill -STOP $$", 1, "T"),
        ("sleep 1000 & (trap '' TERM; sleep 1000; sleep 1000) & cat ts; wait", 4, "S"),
    ] {
        let setup = Setup::new();
        let mut source = setup.open(script).await.unwrap();
        let pid = setup.pid();
        tokio::select! {
            // Its output blocks until it is read.
            (_, cause) = read_all(&mut source) => panic!("{script} ended: {cause}"),
            () = until(&pid, n, state) => {}
        }
        assert_eq!((setup.permits.n_out(), setup.upstream.closer.n_sockets()), (1, 1));
        drop(source);
        assert_eq!(setup.permits.n_closing(), 1, "closing is reported at once");
        setup.is_clean().await;
        assert_eq!(group(&setup.pid()), Vec::<String>::new(), "{script}");
    }
}

#[test]
fn a_runtime_that_ends_kills_programs() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (setup, source) = runtime.block_on(async {
        let setup = Setup::new();
        let source = setup.open("trap '' TERM; cat ts; sleep 1000; sleep 1000").await.unwrap();
        (setup, source)
    });
    let pid = setup.pid();
    drop(source);
    drop(runtime);
    let running = |pgid: &str| group(pgid).iter().any(|it| !it.starts_with('Z'));
    while running(&pid) {
        std::thread::yield_now();
    }
    assert_eq!(setup.permits.n_out(), 0);
}

#[tokio::test]
async fn children_of_an_exited_program_are_killed_too() {
    let setup = Setup::new();
    let script = "(trap '' TERM; sleep 1000; sleep 1000) >/dev/null 2>&1 & cat ts; exit 1";
    let mut source = setup.open(script).await.unwrap();
    assert_eq!(read_all(&mut source).await.1, Cause::Exited("with status 1".into()));
    until(&setup.pid(), 2, "S").await;
    drop(source);
    setup.is_clean().await;
}

#[tokio::test]
async fn a_program_that_exits_before_it_plays_is_reported_with_its_last_log_line() {
    let setup = Setup::new();
    let error = setup.open(&format!("echo '{ADDRESS}: 404 Not Found' >&2; exit 8")).await.unwrap_err();
    assert_eq!(error.to_string(), "the program ended with status 8: …: 404 Not Found");
    assert!(error.can_retry());
    setup.is_clean().await;
}

#[tokio::test]
async fn a_program_that_floods_its_log_plays_on() {
    let setup = Setup::new();
    let script = "while :; do echo \"flood $0\" >&2; done & while cat ts; do :; done";
    let mut source = setup.open(script).await.unwrap();
    let mut n_bytes = 0;
    while n_bytes < 2_000_000 || source.program_output().is_none_or(|it| it.lines.len() < 20) {
        n_bytes += source.read().await.unwrap().len();
    }
    assert_eq!(source.program_output().unwrap().lines, ["flood /bin/sh"; 20]);
    drop(source);
    setup.is_clean().await;
}

#[tokio::test]
async fn a_program_without_output_in_time_is_ended() {
    let mut setup = Setup::new();
    setup.upstream.settings.program_start_timeout = Duration::from_millis(200);
    let error = setup.open("exec sleep 1000").await.unwrap_err();
    assert_eq!(error.cause(), &Cause::FirstPacketTimeout);
    setup.is_clean().await;
}

#[tokio::test]
async fn a_program_whose_opening_is_cancelled_is_ended() {
    let setup = Setup::new();
    let opening = tokio::spawn(setup.open("exec sleep 1000"));
    while !setup.folder.path().join("pid").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    opening.abort();
    assert!(opening.await.unwrap_err().is_cancelled());
    setup.has_given_up().await;
    assert_eq!(group(&setup.pid()), Vec::<String>::new());
    // Dropped while the program starts.
    let mut opening = Box::pin(setup.open("exec sleep 1000"));
    assert!(futures_poll(&mut opening).await);
    drop(opening);
    setup.has_given_up().await;
}

/// Polls once and returns whether the future is pending.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending()))
        .await
}

#[tokio::test]
async fn a_missing_program_is_an_error_of_the_gateway_without_retry() {
    let setup = Setup::new();
    for (command, cause) in [
        (&["no-such-program"][..], "no-such-program is not installed"),
        (&["/no/such/program"], "program is not installed"),
        (&["/etc"], "etc: permission denied"),
        (&[], "the command is empty"),
    ] {
        let error = setup.run(command).await.unwrap_err();
        assert_eq!(error.cause(), &Cause::Program(cause.to_owned()));
        assert_eq!((error.side(), error.can_retry()), (crate::error::Side::Gateway, false));
        setup.is_clean().await;
    }
    assert!(find_program("sh").is_some() && find_program("/bin/sh").is_some());
    assert!(find_program("no-such-program").is_none());
}

#[tokio::test]
async fn a_program_does_not_see_the_settings_of_the_gateway() {
    let setup = Setup::new();
    let mut source = setup.open("env >&2; cat ts").await.unwrap();
    let (bytes, _) = read_all(&mut source).await;
    assert_eq!(labels_in(&bytes).first().map(String::as_str), Some("program"));
    let lines = source.program_output().unwrap().lines;
    let names: Vec<_> = lines.iter().filter_map(|it| Some(it.split_once('=')?.0)).collect();
    // The shell sets the last four itself.
    let known = |it: &&&str| ENVIRONMENT.contains(*it) || ["PWD", "OLDPWD", "SHLVL", "_"].contains(*it);
    assert_eq!(names.iter().filter(|it| !known(it)).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert!(names.contains(&"PATH"));
}

#[tokio::test]
async fn a_program_prints_no_address() {
    let setup = Setup::new();
    let source = setup.open("cat ts; exec sleep 1000").await.unwrap();
    assert!(!format!("{source:?}").contains("pa55word"));
    drop(source);
    setup.is_clean().await;
}
