resource "aws_s3_bucket" "store" {
  bucket              = var.bucket
  force_destroy       = var.force_destroy
  object_lock_enabled = var.object_lock != null
  tags                = var.tags

  # So the keys are the last to go. A bucket that holds runs is not destroyed, and then its keys are not either: without
  # the storage key nobody reads what lies there, not with an identity that was kept offline either.
  depends_on = [aws_kms_key.storage, aws_kms_key.archive]

  lifecycle {
    precondition {
      condition     = contains(local.regions, local.region)
      error_message = "allowed_regions must have ${local.region}, where the provider makes the bucket: else no role could reach it."
    }
  }
}

resource "aws_s3_bucket_versioning" "store" {
  bucket = aws_s3_bucket.store.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_ownership_controls" "store" {
  bucket = aws_s3_bucket.store.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_public_access_block" "store" {
  bucket = aws_s3_bucket.store.id

  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "store" {
  bucket = aws_s3_bucket.store.id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = aws_kms_key.storage.arn
    }
  }
}

resource "aws_s3_bucket_object_lock_configuration" "store" {
  count  = var.object_lock == null ? 0 : 1
  bucket = aws_s3_bucket.store.id

  rule {
    default_retention {
      mode = var.object_lock.mode
      days = var.object_lock.days
    }
  }

  depends_on = [aws_s3_bucket_versioning.store]
}

resource "aws_s3_bucket_policy" "store" {
  bucket = aws_s3_bucket.store.id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [for one in local.bucket_statements : one if !(local.emulated && contains(local.needs_tls, one.Sid))]
  })

  depends_on = [aws_s3_bucket_public_access_block.store]
}

locals {
  needs_tls = ["OnlyTLS", "OnlyModernTLS"] # an emulator on the loopback has none

  # Each is a Deny for everybody, the account's own users included; nothing here allows anything.
  bucket_statements = [
    {
      Sid       = "OnlyTLS"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [local.bucket_arn, "${local.bucket_arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    },
    {
      Sid       = "OnlyModernTLS"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [local.bucket_arn, "${local.bucket_arn}/*"]
      Condition = { NumericLessThan = { "s3:TlsVersion" = "1.2" } }
    },
    # A put that says nothing of encryption gets the bucket's own, which is SSE-KMS with the storage key. So what
    # asks for something else is all that there is to deny.
    {
      Sid       = "OnlyKmsEncryption"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:PutObject"
      Resource  = "${local.bucket_arn}/*"
      Condition = {
        Null            = { "s3:x-amz-server-side-encryption" = "false" }
        StringNotEquals = { "s3:x-amz-server-side-encryption" = "aws:kms" }
      }
    },
    {
      Sid       = "OnlyTheStorageKey"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:PutObject"
      Resource  = "${local.bucket_arn}/*"
      Condition = {
        Null            = { "s3:x-amz-server-side-encryption-aws-kms-key-id" = "false" }
        StringNotEquals = { "s3:x-amz-server-side-encryption-aws-kms-key-id" = aws_kms_key.storage.arn }
      }
    },
    # For `aws:kms` without a key S3 takes the key of the account, which opens for everybody there who may read.
    {
      Sid       = "NoKeyOfTheAccount"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:PutObject"
      Resource  = "${local.bucket_arn}/*"
      Condition = {
        Null = {
          "s3:x-amz-server-side-encryption"                = "false"
          "s3:x-amz-server-side-encryption-aws-kms-key-id" = "true"
        }
      }
    },
    {
      Sid       = "NoCustomerKeys"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:PutObject"
      Resource  = "${local.bucket_arn}/*"
      Condition = { Null = { "s3:x-amz-server-side-encryption-customer-algorithm" = "false" } }
    },
    # Objects are created, never written over. The parts of an upload, and its beginning, carry no condition and create
    # nothing; its completion does.
    {
      Sid       = "OnlyNewNames"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:PutObject"
      Resource  = "${local.bucket_arn}/*"
      Condition = {
        Null            = { "s3:if-none-match" = "true" }
        Bool            = { "s3:ObjectCreationOperation" = "true" }
        StringNotEquals = { "aws:PrincipalArn" = local.role_arns.administrator }
      }
    },
    # `rekey` puts new headers before what is there: only over the very version that it has read.
    {
      Sid       = "OnlyWhatWasRead"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:PutObject"
      Resource  = "${local.bucket_arn}/*"
      Condition = {
        Null         = { "s3:if-none-match" = "true", "s3:if-match" = "true" }
        Bool         = { "s3:ObjectCreationOperation" = "true" }
        StringEquals = { "aws:PrincipalArn" = local.role_arns.administrator }
      }
    },
    {
      Sid       = "HoldIsNotTaken"
      Effect    = "Deny"
      Principal = "*"
      Action    = ["s3:PutObjectTagging", "s3:PutObjectVersionTagging", "s3:DeleteObjectTagging", "s3:DeleteObjectVersionTagging"]
      Resource  = "${local.bucket_arn}/*"
      Condition = {
        StringEquals    = { "s3:ExistingObjectTag/${local.retention.tag}" = "hold" }
        StringNotEquals = { "aws:PrincipalArn" = local.role_arns.administrator }
      }
    },
    {
      Sid       = "HoldIsNotGiven"
      Effect    = "Deny"
      Principal = "*"
      Action    = ["s3:PutObjectTagging", "s3:PutObjectVersionTagging"]
      Resource  = "${local.bucket_arn}/*"
      Condition = {
        StringEquals    = { "s3:RequestObjectTag/${local.retention.tag}" = "hold" }
        StringNotEquals = { "aws:PrincipalArn" = local.role_arns.administrator }
      }
    },
  ]
}
