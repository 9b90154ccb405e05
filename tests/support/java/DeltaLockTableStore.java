package lakelog.tests;

import com.amazonaws.auth.AWSStaticCredentialsProvider;
import com.amazonaws.auth.BasicAWSCredentials;
import com.amazonaws.client.builder.AwsClientBuilder.EndpointConfiguration;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDB;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBClientBuilder;
import io.delta.storage.ExternalCommitEntry;
import io.delta.storage.S3DynamoDBLogStore;
import java.io.File;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;

/**
 * Delta's own store, with what a test needs of it and no setting gives.
 *
 * <p>Its client goes to `lakelog.tests.endpoint`, since it knows AWS's endpoints only. While the
 * file that `lakelog.tests.stop` names exists, writers stop right after the row of their commit is
 * made, as a crash would stop them.
 */
public final class DeltaLockTableStore extends S3DynamoDBLogStore {
  public DeltaLockTableStore(Configuration conf) throws IOException {
    super(conf);
  }

  @Override
  protected AmazonDynamoDB getClient() {
    // The constructor above asks for the client, when no field of this class is set.
    Configuration conf = initHadoopConf();
    return AmazonDynamoDBClientBuilder.standard()
        .withEndpointConfiguration(
            new EndpointConfiguration(
                conf.get("lakelog.tests.endpoint"),
                getParam(conf, DDB_CLIENT_REGION, "us-east-1")))
        .withCredentials(
            new AWSStaticCredentialsProvider(
                new BasicAWSCredentials(
                    conf.get("lakelog.tests.access.key"), conf.get("lakelog.tests.secret.key"))))
        .build();
  }

  @Override
  protected void putExternalEntry(ExternalCommitEntry entry, boolean overwrite)
      throws IOException {
    super.putExternalEntry(entry, overwrite);
    String stop = initHadoopConf().get("lakelog.tests.stop");
    if (!overwrite && stop != null && new File(stop).exists()) {
      throw new IOException("stopped by the test after the row of " + entry.fileName);
    }
  }
}
