/**
 * Waits for the end of its standard input, which comes with the end of the process that holds the other end. Then it
 * ends the process whose id is in a file of the folder, and removes the folder.
 */
const GUARD = `
folder=$1 file=$2
trap "" HUP INT TERM
read -r _
# The number may belong to another process by now, so its command must name the folder.
is_running() { read -r pid <"$folder/$file" && grep -qsF "$folder" "/proc/$pid/cmdline"; } 2>/dev/null
is_running && kill -QUIT "$pid"
tries=0
while is_running && [ $tries -lt 50 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
is_running && kill -KILL "$pid"
rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }
`;
/** Bun kills its children after a test that took too long, but not theirs. */
const START_GUARD = 'exec 3<&0; sh -c "$0" sh "$@" <&3 & exec 3<&-; wait';

/**
 * Removes a folder, and ends its server if it has one, when this process ends, however that happens: a hook of the
 * process does not run when it is killed.
 * @param pidFile the file in the folder whose first line is the server's process id. The server's command names the
 *   folder.
 */
export function endWithUs(folder: string, pidFile = ""): void {
  const guard = Bun.spawn(["sh", "-c", START_GUARD, GUARD, folder, pidFile], {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
    // What kills this process's group does not kill it.
    detached: true,
  });
  guard.unref();
}
