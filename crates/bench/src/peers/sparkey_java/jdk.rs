//! The Java installations of this machine.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use cairn_vfs::{Fs, StdFs};

/// Where distributions put their JVMs.
const JVM_DIR: &str = "/usr/lib/jvm";

/// One installation that runs the jar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jdk {
    /// Its `java`.
    pub launcher: PathBuf,
    /// 8, 17, 25, …
    pub major: u32,
    /// Name and full version of the virtual machine.
    pub description: String,
}

impl Jdk {
    /// Reads what the jar prints about versions: `sparkey 3.2.5, jmh 1.37, OpenJDK 64-Bit Server VM 17.0.15+6`.
    /// Returns Sparkey's version as well. `None` when the line is another.
    pub fn from_version(launcher: &Path, line: &str) -> Option<(Jdk, String)> {
        let mut parts = line.trim().splitn(3, ", ");
        let sparkey = parts.next()?.strip_prefix("sparkey ")?.to_owned();
        parts.next()?.strip_prefix("jmh ")?;
        let description = parts.next()?.to_owned();
        let number = description.rsplit(' ').next()?;
        // Java 8 called itself 1.8.
        let number = number.strip_prefix("1.").unwrap_or(number);
        let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
        let major = digits.parse().ok()?;
        Some((Jdk { launcher: launcher.to_owned(), major, description }, sparkey))
    }
}

/// The `java` launchers of `JAVA_HOME`, `PATH` and the system's JVM directory, each once however many links lead to it.
pub fn installed() -> Vec<PathBuf> {
    let fs = StdFs::new();
    let mut candidates = Vec::new();
    if let Some(home) = env::var_os("JAVA_HOME") {
        candidates.push(PathBuf::from(home).join("bin/java"));
    }
    if let Some(path) = env::var_os("PATH") {
        candidates.extend(env::split_paths(&path).map(|dir| dir.join("java")));
    }
    if let Ok(homes) = fs.read_dir(Path::new(JVM_DIR)) {
        candidates.extend(homes.into_iter().map(|home| home.join("bin/java")));
    }
    let real: BTreeSet<PathBuf> = candidates.iter().filter_map(|path| path.canonicalize().ok()).collect();
    real.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: versions old and new are understood, other words are not.
    #[test]
    fn versions_are_read() {
        let read =
            |line: &str| Jdk::from_version(Path::new("/j"), line).map(|(jdk, sparkey)| (jdk.major, sparkey));
        let line = |vm: &str| format!("sparkey 3.2.5, jmh 1.37, OpenJDK 64-Bit Server VM {vm}\n");
        assert_eq!(read(&line("17.0.15+6-Debian-1")), Some((17, "3.2.5".to_owned())));
        assert_eq!(read(&line("25+36")), Some((25, "3.2.5".to_owned())));
        assert_eq!(read(&line("1.8.0_402-b06")), Some((8, "3.2.5".to_owned())));
        assert_eq!(read("usage: java"), None);
        assert_eq!(read(""), None);
    }
}
