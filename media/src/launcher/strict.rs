//! Restrictions of programs that run code of strangers, such as plugins.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// How the options of the launcher for these restrictions begin.
pub(super) const OPTION: &str = "--strict-";

/// Restrictions beyond those of every program. Such a program never runs as root, reads only the readable files, executes
/// only the executable ones, writes only the writable ones without being able to execute them, cannot look into other
/// processes, and cannot leave its process group.
///
/// In [`Confinement`](super::Confinement), what is listed as readable or writable is only that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strictness {
    /// Whether all files that are not hidden can be read and executed.
    pub reads_all: bool,
    /// Files that can be executed, and folders whose files can be.
    pub executable: Vec<PathBuf>,
    /// Whether it may connect to hosts, and use protocols other than TCP.
    pub connects: bool,
    /// TCP ports at which it may accept connections; `None` means all of them.
    pub ports: Option<Vec<u16>>,
    /// The user that the program becomes; only if the gateway runs as root.
    pub user: Option<ProgramUser>,
    /// Nice value.
    pub niceness: i32,
    /// Folder of the control group that the program joins.
    pub control_group: Option<PathBuf>,
}

/// A user and its only group, by number. They need no entry in the files of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramUser {
    pub uid: u32,
    pub gid: u32,
}

impl Strictness {
    pub(super) fn to_arguments(&self, arguments: &mut Vec<OsString>) {
        let Self { reads_all, executable, connects, ports, user, niceness, control_group } = self;
        let mut add =
            |name: &str, value: OsString| arguments.extend([format!("{OPTION}{name}").into(), value]);
        add("nice", niceness.to_string().into());
        for (name, is_set) in
            [("read-all", *reads_all), ("connect", *connects), ("any-port", ports.is_none())]
        {
            if is_set {
                add(name, "yes".into());
            }
        }
        for path in executable {
            add("execute", path.into());
        }
        for port in ports.iter().flatten() {
            add("port", port.to_string().into());
        }
        if let Some(user) = user {
            add("user", format!("{}:{}", user.uid, user.gid).into());
        }
        if let Some(folder) = control_group {
            add("group", folder.into());
        }
    }

    /// Sets an option. `None` if it is wrong.
    pub(super) fn set(&mut self, option: &str, value: &OsStr) -> Option<()> {
        let name = option.strip_prefix(OPTION)?;
        let text = || value.to_str();
        match name {
            // The first option, so that the defaults of the others are known.
            "nice" => (self.niceness, self.ports) = (text()?.parse().ok()?, Some(Vec::new())),
            "read-all" => self.reads_all = true,
            "connect" => self.connects = true,
            "any-port" => self.ports = None,
            "execute" => self.executable.push(value.into()),
            "group" => self.control_group = Some(value.into()),
            "port" => self.ports.as_mut()?.push(text()?.parse().ok()?),
            "user" => {
                let (uid, gid) = text()?.split_once(':')?;
                self.user = Some(ProgramUser { uid: uid.parse().ok()?, gid: gid.parse().ok()? });
            }
            _ => return None,
        }
        Some(())
    }
}
