package io.lakelog;

import io.lakelog.BridgeLogStore.NoServiceException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermission;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** What the endpoint file says; read for each new connection, as the service may have come anew. */
final class Endpoint {
  final String unix;
  final int port;
  final String token;

  private Endpoint(String unix, int port, String token) {
    this.unix = unix;
    this.port = port;
    this.token = token;
  }

  /** Where the service is looked for if the conf doesn't say. */
  static String defaultFile() {
    String named = System.getenv("LAKELOG_BRIDGE");
    return named != null && !named.trim().isEmpty()
        ? named.trim()
        : Paths.get(System.getProperty("user.home"), ".lakelog", "bridge").toString();
  }

  static Endpoint read(String file) throws IOException {
    Path path = Paths.get(file);
    Map<String, String> found = new HashMap<>();
    try {
      if (othersMayRead(path)) {
        throw new NoServiceException(
            "the endpoint file " + file + " can be read by other users, so its token is worth "
                + "nothing. Make it private (chmod 600), or let the service write it anew",
            null);
      }
      for (String line : Files.readAllLines(path, StandardCharsets.UTF_8)) {
        int equals = line.indexOf('=');
        if (equals > 0) {
          found.put(line.substring(0, equals), line.substring(equals + 1));
        }
      }
      int version = Integer.parseInt(found.get("version"));
      if (version != Wire.VERSION) {
        throw new NoServiceException(
            "the LogStore service of " + file + " speaks version " + version
                + " of the protocol, and this jar version " + Wire.VERSION
                + ": take both from one lakelog",
            null);
      }
      return new Endpoint(
          found.getOrDefault("unix", ""), Integer.parseInt(found.get("port")), found.get("token"));
    } catch (NoSuchFileException none) {
      throw new NoServiceException(
          "no LogStore service runs here: there is no endpoint file " + file + ". In PySpark "
              + "begin the session by lakelog.spark.bridge(builder); elsewhere run `lakelog serve`, "
              + "or name its endpoint file by spark.hadoop.lakelog.bridge.endpoint",
          none);
    } catch (AccessDeniedException denied) {
      throw new NoServiceException(
          "the endpoint file " + file + " belongs to another user, whose LogStore service serves "
              + "no one else. Run `lakelog serve` as " + System.getProperty("user.name")
              + ", and name its endpoint file by spark.hadoop.lakelog.bridge.endpoint",
          denied);
    } catch (NumberFormatException notOne) {
      throw new NoServiceException(file + " is not the endpoint file of a LogStore service", null);
    }
  }

  private static boolean othersMayRead(Path path) throws IOException {
    try {
      Set<PosixFilePermission> found = Files.getPosixFilePermissions(path);
      return found.contains(PosixFilePermission.GROUP_READ)
          || found.contains(PosixFilePermission.OTHERS_READ);
    } catch (UnsupportedOperationException noPosix) {
      return false;
    }
  }
}
