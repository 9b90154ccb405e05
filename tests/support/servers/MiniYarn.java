import java.io.File;
import java.io.FileOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * A YARN of one ResourceManager and two NodeManagers on 127.0.0.1, for tests.
 *
 * <p>Arguments: a folder for its data, a folder for the clients' confs. It prints a line when it is
 * up, and ends when its input ends.
 */
public final class MiniYarn {
  private MiniYarn() {}

  public static void main(String[] args) throws Exception {
    System.setProperty("hadoop.home.dir", args[0]);
    System.setProperty("test.build.data", args[0]);
    Configuration conf = new YarnConfiguration();
    conf.set("yarn.scheduler.capacity.root.queues", "default");
    conf.set("yarn.scheduler.capacity.root.default.capacity", "100");
    conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0");
    conf.setInt("yarn.scheduler.minimum-allocation-mb", 256);
    conf.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
    conf.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
    conf.setInt("yarn.nodemanager.resource.memory-mb", 4096);
    conf.setInt("yarn.nodemanager.resource.cpu-vcores", 4);
    conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100.0");
    MiniYARNCluster cluster = new MiniYARNCluster("lakelog", 2, 1, 1);
    cluster.init(conf);
    cluster.start();
    File site = new File(args[1], "yarn-site.xml");
    try (FileOutputStream out = new FileOutputStream(site)) {
      cluster.getConfig().writeXml(out);
    }
    System.out.println("ready");
    System.out.flush();
    while (System.in.read() != -1) {}
    cluster.stop();
    System.exit(0);
  }
}
